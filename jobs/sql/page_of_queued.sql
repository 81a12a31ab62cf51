-- page_of_queued.sql: ids of the newest queued jobs of some queues, newest first
-- params   queue_ids uuid[], from_id uuid, below_id uuid (ids in [from_id, below_id)), few int (so many of a queue are
--          read and sorted), rows int (so many of each queue can be needed), limit int, skip int
-- returns  id
-- locks    none
-- index    jobs_ready, which is in the order of the claim: where a queue holds few queued jobs they are all read
--          (offset 0 is the fence), where it holds many the newest of jobs_of_queue are looked through
with line as materialized (
    select wanted.queue_id,
           (select count(*)
              from (select 1
                      from jobs as job
                     where job.status = 'queued'
                       and job.queue_id = wanted.queue_id
                     limit %(few)s + 1) as counted) as depth
      from unnest(%(queue_ids)s::uuid[]) as wanted(queue_id)
)
select page.id::text
  from (select few.id
          from line
         cross join lateral (
               select own.id
                 from (select job.id
                         from jobs as job
                        where job.status = 'queued'
                          and job.queue_id = line.queue_id
                       offset 0) as own
                where own.id >= %(from_id)s
                  and own.id < %(below_id)s
                order by own.id desc
                limit %(rows)s) as few
         where line.depth <= %(few)s
         union all
        select many.id
          from line
         cross join lateral (
               select job.id
                 from jobs as job
                where job.status = 'queued'
                  and job.queue_id = line.queue_id
                  and job.id >= %(from_id)s
                  and job.id < %(below_id)s
                order by job.id desc
                limit %(rows)s) as many
         where line.depth > %(few)s) as page
 order by page.id desc
 limit %(limit)s
offset %(skip)s;
