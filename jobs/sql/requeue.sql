-- requeue.sql: give ended jobs a fresh budget of attempts; their executions stay
-- params   ids uuid[] (their rows are locked by the caller), blocked uuid[] (of them, those that wait for others of
--          them again: scheduled instead of queued)
-- returns  id, queue_id, status
-- locks    the rows until commit
-- index    primary key of jobs
update jobs as job
   set status              = case when job.id = any(%(blocked)s::uuid[]) then 'scheduled' else 'queued' end,
       is_blocked          = job.id = any(%(blocked)s::uuid[]),
       attempt_count       = 0,
       lost_count          = 0,
       start_deadline      = null,
       deadline            = null,
       run_at              = statement_timestamp(),
       result              = null,
       error_message       = null,
       cancel_requested_at = null,
       progress_percent    = null,
       progress_note       = null,
       completed_at        = null,
       updated_at          = statement_timestamp()
 where job.id = any(%(ids)s::uuid[])
   and job.status in ('failed', 'dead_letter', 'completed', 'cancelled')
returning job.id::text, job.queue_id::text, job.status;
