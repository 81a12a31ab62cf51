-- page_of_type.sql: ids of the newest jobs of one type in a queue, looking through a bounded number of jobs
-- params   queue_id uuid, from_id uuid, below_id uuid (ids in [from_id, below_id)), status text (null = any),
--          job_type text, scan int, limit int, skip int
-- returns  id, is_match    newest first; if fewer than limit match and there are older jobs, the last row is no match:
--          the place to go on from
-- locks    none
-- index    as page_of_jobs.sql; no index holds types, which would cost every submission
with looked_at as materialized (
    select job.id, job.job_type = %(job_type)s as is_match
      from jobs as job
     where job.queue_id = %(queue_id)s
       and job.id >= %(from_id)s
       and job.id < %(below_id)s
       and (%(status)s::text is null or job.status = %(status)s)
     order by job.id desc
     limit %(scan)s
), matching as (
    select id, true as is_match
      from looked_at
     where is_match
     order by id desc
     limit %(limit)s
    offset %(skip)s
)
select id::text, is_match
  from (select id, is_match from matching
         union all
        select min.id, false
          from (select id from looked_at order by id limit 1) as min
         where (select count(*) from looked_at) = %(scan)s
           and (select count(*) from matching) < %(limit)s) as answer
 order by id desc, is_match desc;
