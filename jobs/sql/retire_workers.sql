-- retire_workers.sql: workers that fell silent are lost, and their leases lapse at once instead of in their time
-- params   silent_s float8
-- returns  id    of the workers retired
-- locks    their rows and the jobs they held, until commit
-- index    workers_alive; jobs_in_flight, which is small
with silent as (
    update workers
       set status = 'lost'
     where status in ('active', 'draining')
       and last_seen_at < clock_timestamp() - make_interval(secs => %(silent_s)s)
    returning id
), hastened as (
    update jobs as job
       set lease_expires_at = least(job.lease_expires_at, clock_timestamp())
      from silent
     where job.status in ('claimed', 'running')
       and job.locked_by = silent.id
)
select id::text
  from silent;
