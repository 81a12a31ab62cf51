-- descendants.sql: the jobs that wait for a job, directly or through others
-- params   id uuid
-- returns  id    without the job itself
-- locks    none
-- index    dependencies_of_parent
with recursive downstream as (
    select edge.job_id as id
      from job_dependencies as edge
     where edge.depends_on_job_id = %(id)s
     union
    select edge.job_id
      from downstream
      join job_dependencies as edge on edge.depends_on_job_id = downstream.id
)
select id::text
  from downstream
 order by id;
