-- history.sql: what a queue, or a whole project, did in each bar of a range, from the sums of its minutes
-- params   project_id uuid, queue_id uuid (the queue 0 stands for all together), since, until timestamptz, step_s int;
--          of the histograms: times_grain (the sums they are taken from), times_since, times_step_s
-- returns  bar (when it began), created, started, completed, failed (those that expired too), cancelled, dead, the
--          histograms of waits and of runs (48 buckets; of the step of times in which the bar begins); last, in the
--          first row: a JSON text of how many of each job type completed and failed. The oldest bar first; one in which
--          nothing was done is missing
-- locks    none
-- index    the primary key of job_stats. Written out, the buckets of a day cost half of what unnest takes
with picked as materialized (   -- without the histograms: they would go to the disk
    select date_bin(make_interval(secs => %(step_s)s), at, %(since)s) as bar, job_type, created, started, completed,
           failed + expired as failed, cancelled, dead
      from job_stats
     where project_id = %(project_id)s
       and grain = 'minute'
       and at >= %(since)s
       and at < %(until)s
       and queue_id = %(queue_id)s
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
), times as (
    select step,
           array[sum(w[1]), sum(w[2]), sum(w[3]), sum(w[4]), sum(w[5]), sum(w[6]), sum(w[7]), sum(w[8]),
                 sum(w[9]), sum(w[10]), sum(w[11]), sum(w[12]), sum(w[13]), sum(w[14]), sum(w[15]),
                 sum(w[16]), sum(w[17]), sum(w[18]), sum(w[19]), sum(w[20]), sum(w[21]), sum(w[22]),
                 sum(w[23]), sum(w[24]), sum(w[25]), sum(w[26]), sum(w[27]), sum(w[28]), sum(w[29]),
                 sum(w[30]), sum(w[31]), sum(w[32]), sum(w[33]), sum(w[34]), sum(w[35]), sum(w[36]),
                 sum(w[37]), sum(w[38]), sum(w[39]), sum(w[40]), sum(w[41]), sum(w[42]), sum(w[43]),
                 sum(w[44]), sum(w[45]), sum(w[46]), sum(w[47]), sum(w[48])]::bigint[] as waits,
           array[sum(r[1]), sum(r[2]), sum(r[3]), sum(r[4]), sum(r[5]), sum(r[6]), sum(r[7]), sum(r[8]),
                 sum(r[9]), sum(r[10]), sum(r[11]), sum(r[12]), sum(r[13]), sum(r[14]), sum(r[15]),
                 sum(r[16]), sum(r[17]), sum(r[18]), sum(r[19]), sum(r[20]), sum(r[21]), sum(r[22]),
                 sum(r[23]), sum(r[24]), sum(r[25]), sum(r[26]), sum(r[27]), sum(r[28]), sum(r[29]),
                 sum(r[30]), sum(r[31]), sum(r[32]), sum(r[33]), sum(r[34]), sum(r[35]), sum(r[36]),
                 sum(r[37]), sum(r[38]), sum(r[39]), sum(r[40]), sum(r[41]), sum(r[42]), sum(r[43]),
                 sum(r[44]), sum(r[45]), sum(r[46]), sum(r[47]), sum(r[48])]::bigint[] as runs
      from (select date_bin(make_interval(secs => %(times_step_s)s), at, %(times_since)s) as step,
                   wait_histogram as w, run_histogram as r
              from job_stats
             where project_id = %(project_id)s
               and grain = %(times_grain)s
               and at >= %(times_since)s
               and at < %(until)s
               and queue_id = %(queue_id)s) as spread
     group by step
)
select bar, created, started, completed, failed, cancelled, dead, coalesce(waits, '{}'), coalesce(runs, '{}'),
       case when bar = (select min(bar) from counts) then (select counts from by_type) end
  from counts
  left join times
    on times.step = date_bin(make_interval(secs => %(times_step_s)s), bar, %(times_since)s)
 order by bar;
