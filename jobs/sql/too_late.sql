-- too_late.sql: waiting jobs that may not begin any more: not begun by their start deadline, or behind their deadline
-- params   limit int, skip uuid[] (rows that failed before and are set aside), only uuid[] (null = all)
-- returns  id, is_start    which of the two deadlines it was
-- locks    the rows until commit; rows locked by others are skipped
-- index    jobs_to_begin_by, on the earlier of the two: it holds only jobs that have one and wait
select id::text, (attempt_count = 0 and coalesce(start_deadline <= statement_timestamp(), false))
  from jobs
 where status in ('scheduled', 'queued')
   and least(deadline, start_deadline) <= statement_timestamp()
   and (deadline <= statement_timestamp() or (attempt_count = 0 and start_deadline <= statement_timestamp()))
   and id <> all(%(skip)s::uuid[])
   and (%(only)s::uuid[] is null or id = any(%(only)s::uuid[]))
 order by id
 limit %(limit)s
   for no key update skip locked;
