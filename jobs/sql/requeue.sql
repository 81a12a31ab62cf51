-- requeue.sql: give ended jobs a fresh budget of attempts; their executions stay
-- params   ids uuid[] (their rows are locked by the caller)
-- returns  id, queue_id
-- locks    the rows until commit
-- index    primary key of jobs
update jobs as job
   set status              = 'queued',
       attempt_count       = 0,
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
returning job.id::text, job.queue_id::text;
