-- extend_leases_of_worker.sql: push the ends of all leases of a worker that computes too hard to name them
-- params   worker_id uuid
-- returns  lease_token, is_cancel_requested
-- locks    the rows until commit
-- index    jobs_in_flight, which is small; fenced by locked_by and the live lease_token, for whoever lost the row
--          lost both
update jobs as job
   set lease_expires_at = clock_timestamp() + make_interval(secs => queue.visibility_timeout_secs)
  from queues as queue
 where job.status in ('claimed', 'running')
   and job.locked_by = %(worker_id)s
   and job.lease_token is not null
   and queue.id = job.queue_id
returning job.lease_token::text, job.cancel_requested_at is not null;
