-- page_of_jobs.sql: ids of the newest jobs of some queues, newest first
-- params   queue_ids uuid[], from_id uuid, below_id uuid (ids in [from_id, below_id)), status text (null = any),
--          rows int (so many of each queue can be needed), limit int, skip int
-- returns  id
-- locks    none
-- index    by the status jobs_of_queue, jobs_ended, jobs_scheduled or jobs_in_flight; one probe a queue, and a second look
--          into those whose newest job can be on the page: at most as many as it has rows (queued ones:
--          page_of_queued.sql). The client binds literals: a filter that is null is gone before the plan is made.
with newest as materialized (
    select wanted.queue_id,
           (select job.id
              from jobs as job
             where job.queue_id = wanted.queue_id
               and job.id >= %(from_id)s
               and job.id < %(below_id)s
               and (%(status)s::text is null or job.status = %(status)s)
             order by job.id desc
             limit 1) as id
      from unnest(%(queue_ids)s::uuid[]) as wanted(queue_id)
), bound as materialized (   -- no page goes on behind it: so many jobs, one of each queue, are not older
    select coalesce((select id from newest where id is not null order by id desc offset %(rows)s - 1 limit 1),
                    %(from_id)s) as id
)
select page.id::text
  from newest
 cross join lateral (
       select job.id
         from jobs as job
        where job.queue_id = newest.queue_id
          and job.id >= %(from_id)s   -- not the bound: the plan would rest on a guess where it lies
          and job.id < %(below_id)s
          and (%(status)s::text is null or job.status = %(status)s)
        order by job.id desc
        limit %(rows)s) as page
 where newest.id >= (select id from bound)
 order by page.id desc
 limit %(limit)s
offset %(skip)s;
