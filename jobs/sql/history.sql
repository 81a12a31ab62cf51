-- history.sql: what a queue, or a whole project, did in each bar of a range, from the sums of its minutes
-- params   project_id uuid, queue_id uuid (the queue 0 stands for all together), since, until timestamptz, step_s int
-- returns  bar (when it began), created, started, completed, failed (those that expired too), cancelled, dead, the
--          buckets that are not empty, how many waits and how many runs each holds; last, in the first row: a JSON text
--          of how many of each job type completed and failed. The oldest bar first; one without anything is missing
-- locks    none
-- index    the primary key of job_stats; most buckets are empty and go before anything is added up
with picked as not materialized (   -- read three times: kept, the histograms of a day would go to the disk
    select date_bin(make_interval(secs => %(step_s)s), at, %(since)s) as bar, job_type, created, started, completed,
           failed + expired as failed, cancelled, dead, wait_histogram, run_histogram
      from job_stats
     where project_id = %(project_id)s
       and grain = 'minute'
       and at >= %(since)s
       and at < %(until)s
       and queue_id = %(queue_id)s
), buckets as (
    select bar, bucket, sum(waits)::bigint as waits, sum(runs)::bigint as runs
      from (select bar, generate_series(0, 47) as bucket, unnest(wait_histogram) as waits, unnest(run_histogram) as runs
              from picked) as each
     where waits > 0
        or runs > 0
     group by bar, bucket
), times as (
    select bar, array_agg(bucket) as buckets, array_agg(waits) as waits, array_agg(runs) as runs
      from buckets
     group by bar
), by_type as (
    select json_object_agg(job_type, array[completed, failed])::text as counts
      from (select job_type, sum(completed) as completed, sum(failed) as failed
              from picked
             group by job_type) as summed
), counts as (
    select bar, sum(created)::bigint as created, sum(started)::bigint as started, sum(completed)::bigint as completed,
           sum(failed)::bigint as failed, sum(cancelled)::bigint as cancelled, sum(dead)::bigint as dead
      from picked
     group by bar
)
select bar, created, started, completed, failed, cancelled, dead,
       coalesce(buckets, '{}'), coalesce(waits, '{}'), coalesce(runs, '{}'),
       case when bar = (select min(bar) from counts) then (select counts from by_type) end
  from counts
  left join times using (bar)
 order by bar;
