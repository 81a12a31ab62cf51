-- extend_leases_of_worker.sql: push the ends of all leases of a worker that computes too hard to name them
-- params   worker_id uuid
-- returns  lease_token, is_cancel_requested
-- locks    the rows until commit; rows locked by others are skipped
-- index    jobs_in_flight, which is small; fenced by locked_by and the live lease_token, for whoever lost the row
--          lost both
with mine as materialized (
    select job.id, queue.visibility_timeout_secs as lease_s
      from jobs as job
      join queues as queue on queue.id = job.queue_id
     where job.status in ('claimed', 'running')
       and job.locked_by = %(worker_id)s
       and job.lease_token is not null
     order by job.id
       for no key update of job skip locked
)
update jobs as job
   set lease_expires_at = clock_timestamp() + make_interval(secs => mine.lease_s)
  from mine
 where job.id = mine.id
   and job.locked_by = %(worker_id)s
   and job.lease_token is not null
returning job.lease_token::text, job.cancel_requested_at is not null;
