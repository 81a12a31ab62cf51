-- expired.sql: attempts whose lease has run out
-- params   limit int, skip uuid[] (rows that failed before and are set aside), only uuid[] (null = all)
-- returns  id, lease_token, locked_by, claimed_at, attempt_count, lost_count
-- locks    the rows until commit, so that a late settle waits and then finds its token gone; busy rows are skipped
-- index    jobs_in_flight, which is small; lease_expires_at is in no index on purpose
select id::text, lease_token::text, locked_by::text, locked_at::text, attempt_count, lost_count
  from jobs
 where status in ('claimed', 'running')
   and lease_expires_at < clock_timestamp()
   and id <> all(%(skip)s::uuid[])
   and (%(only)s::uuid[] is null or id = any(%(only)s::uuid[]))
 order by id
 limit %(limit)s
   for no key update skip locked;
