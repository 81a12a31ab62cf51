-- states_of.sql: how jobs are now, for those who look
-- params   ids uuid[], parents uuid[] (the jobs that wait for these, too)
-- returns  queue_id, status, id
-- locks    none
-- index    primary key of jobs; dependencies_of_parent
select queue_id::text, status, id::text
  from jobs
 where id = any(%(ids)s::uuid[])
    or id in (select edge.job_id from job_dependencies as edge where edge.depends_on_job_id = any(%(parents)s::uuid[]));
