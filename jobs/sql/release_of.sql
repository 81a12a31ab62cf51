-- release_of.sql: let go the jobs that waited for these, if they have ended
-- params   ids uuid[]
-- returns  queue_id    one row a job that is queued now
-- locks    the waiting jobs, in the order of their ids
-- index    dependencies_of_parent
select queue_id::text
  from release_dependants(%(ids)s::uuid[]) as queue_id;
