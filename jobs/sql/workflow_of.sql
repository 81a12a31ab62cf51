-- workflow_of.sql: the jobs that hang together with a job by who waits for whom, in either direction
-- params   id uuid, most int (so many are enough)
-- returns  id    with the job itself; in the order they were reached
-- locks    none
-- index    dependencies_of_parent and the primary key of job_dependencies
with recursive reached(id) as (
    select %(id)s::uuid
     union
    select next.id
      from reached
     cross join lateral (
           select edge.job_id as id
             from job_dependencies as edge
            where edge.depends_on_job_id = reached.id
            union all
           select edge.depends_on_job_id
             from job_dependencies as edge
            where edge.job_id = reached.id) as next
)
select id::text
  from reached
 limit %(most)s;
