-- fold_deltas.sql: add increments of one minute to the sums of its minute, hour and day and of all time, for each queue
-- and job type, and for the whole project (under the queue 0 and no type: pages of big projects read only these)
-- params   limit int (increments at once)
-- returns  count of increments folded; 0 if there were none that nobody else holds
-- locks    the increments until commit (skip locked), then the rows of the sums
-- index    primary keys. All increments of a call are of one minute, so that no sum is met twice
with picked as materialized (
    select id, project_id
      from job_stat_deltas
     where date_trunc('minute', at) = (select date_trunc('minute', at) from job_stat_deltas order by id limit 1)
     order by id
     limit %(limit)s
       for update skip locked
), taken as materialized (
    delete from job_stat_deltas as delta
     using picked
     where delta.id = picked.id
       and delta.project_id = picked.project_id
    returning delta.*
), counted as materialized (
    select * from taken
     union all
    select id, project_id, '00000000-0000-0000-0000-000000000000', '', at, created, started, completed, failed, retried,
           dead, cancelled, expired, waits_ms, runs_ms
      from taken
), summed as (
    select project_id, queue_id, job_type, min(at) as at, sum(created) as created, sum(started) as started,
           sum(completed) as completed, sum(failed) as failed, sum(retried) as retried, sum(dead) as dead,
           sum(cancelled) as cancelled, sum(expired) as expired
      from counted
     group by project_id, queue_id, job_type
), times as (
    select project_id, queue_id, job_type, true as is_wait, unnest(waits_ms) as ms from counted
     union all
    select project_id, queue_id, job_type, false, unnest(runs_ms) from counted
), buckets as (
    select project_id, queue_id, job_type, is_wait,
           case when ms > 1 then least(47, ceil(ln(ms) * 2.885390081777927 - 1e-9))::int else 0 end as bucket,
           count(*) as n, sum(ms) as ms
      from times
     group by 1, 2, 3, 4, 5
), histograms as (
    select summed.project_id, summed.queue_id, summed.job_type,
           array_agg(coalesce(wait.n, 0) order by i) as waits, coalesce(sum(wait.ms), 0) as wait_ms,
           array_agg(coalesce(run.n, 0) order by i) as runs, coalesce(sum(run.ms), 0) as run_ms
      from summed
     cross join generate_series(0, 47) as i
      left join buckets as wait
        on (wait.project_id, wait.queue_id, wait.job_type) = (summed.project_id, summed.queue_id, summed.job_type)
       and wait.is_wait
       and wait.bucket = i
      left join buckets as run
        on (run.project_id, run.queue_id, run.job_type) = (summed.project_id, summed.queue_id, summed.job_type)
       and not run.is_wait
       and run.bucket = i
     group by 1, 2, 3
), written as (
    insert into job_stats as stat (project_id, queue_id, job_type, grain, at, created, started, completed, failed,
                                   retried, dead, cancelled, expired, wait_ms, run_ms, wait_histogram, run_histogram)
    select project_id, queue_id, job_type, grain,
           case when grain = 'all' then 'epoch'::timestamptz else date_trunc(grain, at, 'UTC') end, created, started,
           completed, failed, retried, dead, cancelled, expired, wait_ms, run_ms, waits, runs
      from summed
      join histograms using (project_id, queue_id, job_type)
     cross join (values ('minute'), ('hour'), ('day'), ('all')) as grains(grain)
     order by project_id, queue_id, job_type, grain
        on conflict (project_id, grain, at, queue_id, job_type) do update
       set created        = stat.created + excluded.created,
           started        = stat.started + excluded.started,
           completed      = stat.completed + excluded.completed,
           failed         = stat.failed + excluded.failed,
           retried        = stat.retried + excluded.retried,
           dead           = stat.dead + excluded.dead,
           cancelled      = stat.cancelled + excluded.cancelled,
           expired        = stat.expired + excluded.expired,
           wait_ms        = stat.wait_ms + excluded.wait_ms,
           run_ms         = stat.run_ms + excluded.run_ms,
           wait_histogram = (select array_agg(a + b order by i)
                               from unnest(stat.wait_histogram, excluded.wait_histogram)
                               with ordinality as pair(a, b, i)),
           run_histogram  = (select array_agg(a + b order by i)
                               from unnest(stat.run_histogram, excluded.run_histogram)
                               with ordinality as pair(a, b, i))
)
select count(*) from taken;
