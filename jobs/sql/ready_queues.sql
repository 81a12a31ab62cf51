-- ready_queues.sql: the queues a worker could claim from now
-- params   queue_ids uuid[] (null = every queue), types text[], patterns text[] (LIKE), sure uuid[] (queues known to hold
--          such a job: not looked into, there may be many dead entries before their first live one)
-- returns  id, project_id, priority, is_gated    queues that are not paused and hold a queued job of a known type
-- locks    none; what it says may be stale by the time of the claim, which decides again
-- index    jobs_ready, one probe a queue: a scalar subquery, which is never turned into a join with all that waits
select queue.id::text, queue.project_id::text, queue.priority, queue.is_gated
  from queues as queue
 where not queue.is_paused
   and queue.deleted_at is null
   and (%(queue_ids)s::uuid[] is null or queue.id = any(%(queue_ids)s::uuid[]))
   and (queue.id = any(%(sure)s::uuid[])
        or (select true
              from jobs as job
             where job.status = 'queued'
               and job.queue_id = queue.id
               and (job.job_type = any(%(types)s::text[]) or job.job_type like any(%(patterns)s::text[]))
             limit 1))
   and (queue.max_concurrency is null
        or queue.max_concurrency > (select count(*)
                                      from jobs as busy
                                     where busy.queue_id = queue.id
                                       and busy.status in ('claimed', 'running')));
