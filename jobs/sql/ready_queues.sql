-- ready_queues.sql: the queues a worker could claim from now
-- params   queue_ids uuid[] (null = every queue), types text[], patterns text[] (LIKE), now decided by the database
-- returns  id, project_id, priority, is_gated    queues that are not paused and hold a queued job of a known type
-- locks    none; what it says may be stale by the time of the claim, which decides again
-- index    jobs_ready, one probe a queue
select queue.id::text, queue.project_id::text, queue.priority, queue.is_gated
  from queues as queue
 where not queue.is_paused
   and queue.deleted_at is null
   and (%(queue_ids)s::uuid[] is null or queue.id = any(%(queue_ids)s::uuid[]))
   and exists (select 1
                 from jobs as job
                where job.status = 'queued'
                  and job.queue_id = queue.id
                  and (job.job_type = any(%(types)s::text[]) or job.job_type like any(%(patterns)s::text[])))
   and (queue.max_concurrency is null
        or queue.max_concurrency > (select count(*)
                                      from jobs as busy
                                     where busy.queue_id = queue.id
                                       and busy.status in ('claimed', 'running')));
