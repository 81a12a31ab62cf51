-- start.sql: claimed -> running for prefetched jobs whose handlers have begun
-- params   ids uuid[], tokens uuid[]
-- returns  nothing
-- locks    the rows until commit
-- index    primary key of jobs; the lease token is the fence
update jobs as job
   set status = 'running', updated_at = statement_timestamp()
  from unnest(%(ids)s::uuid[], %(tokens)s::uuid[]) as begun(id, token)
 where job.id = begun.id
   and job.lease_token = begun.token
   and job.status = 'claimed';
