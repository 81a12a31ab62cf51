-- history.sql: what a queue, or a whole project, did in each bar of a range, from the sums of its minutes
-- params   project_id uuid, queue_id uuid (the queue 0 stands for all together), since, until timestamptz, step_s int
-- returns  bar (when it began), created, started, completed, failed (those that expired too), cancelled, dead, and of
--          waits and of runs the buckets that are not empty and how many each holds; last, in the first row: a JSON
--          text of how many of each job type completed and failed. The oldest bar first; one without anything is missing
-- locks    none
-- index    the primary key of job_stats; most buckets are empty and go before anything is added up
with picked as materialized (
    select date_bin(make_interval(secs => %(step_s)s), at, %(since)s) as bar, job_type, created, started, completed,
           failed + expired as failed, cancelled, dead, wait_histogram, run_histogram
      from job_stats
     where project_id = %(project_id)s
       and grain = 'minute'
       and at >= %(since)s
       and at < %(until)s
       and queue_id = %(queue_id)s
), buckets as (
    select bar, is_wait, bucket, sum(n)::bigint as n
      from picked
     cross join lateral (
           select true as is_wait, bucket, n from unnest(wait_histogram) with ordinality as wait(n, bucket) where n > 0
            union all
           select false, bucket, n from unnest(run_histogram) with ordinality as run(n, bucket) where n > 0) as filled
     group by bar, is_wait, bucket
), times as (
    select bar, array_agg(bucket - 1) filter (where is_wait) as waits, array_agg(n) filter (where is_wait) as n_waits,
           array_agg(bucket - 1) filter (where not is_wait) as runs, array_agg(n) filter (where not is_wait) as n_runs
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
       coalesce(waits, '{}'), coalesce(n_waits, '{}'), coalesce(runs, '{}'), coalesce(n_runs, '{}'),
       case when bar = (select min(bar) from counts) then (select counts from by_type) end
  from counts
  left join times using (bar)
 order by bar;
