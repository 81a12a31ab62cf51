-- cancel.sql: end waiting jobs; ask running ones to stop
-- params   ids uuid[], reason text (kept as the error message of a waiting job)
-- returns  id, status    cancelled, or claimed and running where a worker was asked; ended jobs are missing
-- locks    the rows until commit, in the order of their ids
-- index    primary key of jobs
with chosen as materialized (
    select id
      from jobs
     where id = any(%(ids)s::uuid[])
       and status in ('scheduled', 'queued', 'claimed', 'running')
     order by id
       for no key update
), cancelled as (
update jobs as job
   set status              = case when job.status in ('scheduled', 'queued') then 'cancelled' else job.status end,
       completed_at        = case when job.status in ('scheduled', 'queued') then statement_timestamp() end,
       error_message       = case when job.status in ('scheduled', 'queued') then %(reason)s
                                  else job.error_message end,
       cancel_requested_at = coalesce(job.cancel_requested_at, statement_timestamp()),
       updated_at          = statement_timestamp()
  from chosen
 where job.id = chosen.id
returning job.id::text, job.project_id, job.queue_id, job.job_type, job.status
), counted as (
    insert into job_stat_deltas (project_id, queue_id, job_type, at, cancelled)
    select project_id, queue_id, job_type, statement_timestamp(), count(*)
      from cancelled
     where status = 'cancelled'
     group by project_id, queue_id, job_type
)
select id, status from cancelled;
