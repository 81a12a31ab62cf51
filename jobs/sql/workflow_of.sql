-- workflow_of.sql: the jobs that hang together with a job by who waits for whom, in either direction
-- params   id uuid, most int (so many are enough)
-- returns  id, job_type, status, parents text[]    with the job itself; those nearest to it if there are more
-- locks    none
-- index    dependencies_of_parent and the primary keys of jobs and job_dependencies
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
), chosen as materialized (
    select id from reached limit %(most)s
)
select job.id::text,
       job.job_type,
       job.status,
       array(select edge.depends_on_job_id::text
               from job_dependencies as edge
              where edge.job_id = job.id)
  from chosen
  join jobs as job on job.id = chosen.id
 order by job.id;
