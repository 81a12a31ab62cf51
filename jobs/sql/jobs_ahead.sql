-- jobs_ahead.sql: how many queued jobs of its queue would be claimed before a job
-- params   queue_id uuid, priority int, run_at timestamptz, id uuid, cap int (count no further)
-- returns  n
-- locks    none
-- index    jobs_ready
select count(*)
  from (select 1
          from jobs as job
         where job.status = 'queued'
           and job.queue_id = %(queue_id)s
           and (-job.priority, job.run_at, job.id) < (-(%(priority)s::int), %(run_at)s::timestamptz, %(id)s::uuid)
         limit %(cap)s) as ahead;
