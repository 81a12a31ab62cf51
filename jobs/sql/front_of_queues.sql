-- front_of_queues.sql: of each queue that has claimable jobs the one that would be claimed first
-- params   none
-- returns  queue_id uuid, run_at timestamptz, has_circuit boolean
-- locks    nothing
-- index    jobs_ready, one entry of each queue
select queue.id, front.run_at, front.circuit is not null
  from queues queue
 cross join lateral (
       select job.run_at, job.circuit
         from jobs job
        where job.project_id = queue.project_id
          and job.queue_id = queue.id
          and job.status = 'queued'
        order by -job.priority, job.run_at, job.id
        limit 1
       ) front
 where queue.deleted_at is null;
