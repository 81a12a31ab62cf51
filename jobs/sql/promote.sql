-- promote.sql: scheduled -> queued for jobs whose time has come and which wait for nothing else
-- params   limit int, skip uuid[] (rows that failed before and are set aside), only uuid[] (null = all)
-- returns  queue_id, id    one row a promoted job
-- locks    the picked rows until commit; rows locked by others are skipped
-- index    jobs_due (run_at, id) where status = 'scheduled' and not is_blocked
with due as materialized (
    select id, project_id
      from jobs
     where status = 'scheduled'
       and not is_blocked
       and run_at <= statement_timestamp()
       and id <> all(%(skip)s::uuid[])
       and (%(only)s::uuid[] is null or id = any(%(only)s::uuid[]))
     order by run_at, id
     limit %(limit)s
       for no key update skip locked
)
update jobs as job
   set status = 'queued', updated_at = statement_timestamp()
  from due
 where job.id = due.id
   and job.project_id = due.project_id
returning job.queue_id::text, job.id::text;
