-- start.sql: claimed -> running for prefetched jobs whose handlers have begun
-- params   ids uuid[], tokens uuid[]
-- returns  nothing
-- locks    the rows until commit
-- index    primary key of jobs. Fenced by id and lease_token alone: a status in the fence would make the planner walk
--          jobs_in_flight and all its dead entries; and a row with a token is claimed, or runs already.
update jobs as job
   set status = 'running',
       updated_at = case when job.status = 'claimed' then statement_timestamp() else job.updated_at end
  from unnest(%(ids)s::uuid[], %(tokens)s::uuid[]) as begun(id, token)
 where job.id = begun.id
   and job.lease_token = begun.token;
