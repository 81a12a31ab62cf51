-- page_of_jobs.sql: ids of the newest jobs of some queues, newest first
-- params   queue_ids uuid[], from_id uuid, below_id uuid (ids in [from_id, below_id)), status text (null = any),
--          rows int (so many of each queue can be needed), limit int, skip int
-- returns  id
-- locks    none
-- index    by the status jobs_of_queue, jobs_ended, jobs_scheduled or jobs_in_flight; one probe a queue (queued ones:
--          page_of_queued.sql). The client binds literals: a filter that is null is gone before the plan is made.
select page.id::text
  from unnest(%(queue_ids)s::uuid[]) as wanted(queue_id)
 cross join lateral (
       select job.id
         from jobs as job
        where job.queue_id = wanted.queue_id
          and job.id >= %(from_id)s
          and job.id < %(below_id)s
          and (%(status)s::text is null or job.status = %(status)s)
        order by job.id desc
        limit %(rows)s) as page
 order by page.id desc
 limit %(limit)s
offset %(skip)s;
