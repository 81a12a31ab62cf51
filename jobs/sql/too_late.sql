-- too_late.sql: waiting jobs that may not begin any more: not begun by their start deadline, or behind their deadline
-- params   limit int, skip uuid[] (rows that failed before and are set aside), only uuid[] (null = all)
-- returns  id, is_start    which of the two deadlines it was
-- locks    the rows until commit; rows locked by others are skipped
-- index    jobs_to_begin_by, jobs_to_end_by: both hold only jobs that have such a deadline and wait
with late as materialized (
    (select id
       from jobs
      where status in ('scheduled', 'queued')
        and attempt_count = 0
        and start_deadline <= statement_timestamp()
        and id <> all(%(skip)s::uuid[])
        and (%(only)s::uuid[] is null or id = any(%(only)s::uuid[]))
      order by start_deadline
      limit %(limit)s)
     union
    (select id
       from jobs
      where status in ('scheduled', 'queued')
        and deadline <= statement_timestamp()
        and id <> all(%(skip)s::uuid[])
        and (%(only)s::uuid[] is null or id = any(%(only)s::uuid[]))
      order by deadline
      limit %(limit)s)
)
select job.id::text, (job.attempt_count = 0 and coalesce(job.start_deadline <= statement_timestamp(), false))
  from late
  join jobs as job on job.id = late.id
 where job.status in ('scheduled', 'queued')
   and (job.deadline <= statement_timestamp()
        or (job.attempt_count = 0 and job.start_deadline <= statement_timestamp()))
 order by job.id
 limit %(limit)s
   for no key update of job skip locked;
