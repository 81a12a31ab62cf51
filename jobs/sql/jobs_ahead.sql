-- jobs_ahead.sql: how many queued jobs of its queue would be claimed before a job
-- params   queue_id uuid, priority int, run_at timestamptz, id uuid, cap int (look no further)
-- returns  n, is_capped    n without the jobs that a claim walks past now, for the reasons of claim.sql and
--          claim_gated.sql: an open circuit, a full key, a deadline; is_capped: there are more than were looked at
-- locks    none
-- index    jobs_ready; jobs_keyed_in_flight, circuit_breakers_not_trusted
with full_keys as (
    select job.concurrency_key as key
      from jobs as job
      join queues as queue on queue.id = job.queue_id
     where job.queue_id = %(queue_id)s
       and job.status in ('claimed', 'running')
       and job.concurrency_key is not null
     group by job.concurrency_key, queue.max_concurrency_per_key
    having count(*) >= queue.max_concurrency_per_key
), open_circuits as (
    select breaker.name, breaker.let_through
      from circuit_breakers as breaker
     where breaker.project_id = (select project_id from queues where id = %(queue_id)s)
       and (breaker.state in ('open', 'half_open') or breaker.allowance is not null)
), before as (
    select job.id, job.concurrency_key, job.circuit, job.deadline, job.start_deadline, job.attempt_count
      from jobs as job
     where job.status = 'queued'
       and job.queue_id = %(queue_id)s
       and (-job.priority, job.run_at, job.id) < (-(%(priority)s::int), %(run_at)s::timestamptz, %(id)s::uuid)
     limit %(cap)s
)
select count(*) filter (
           where not exists (select from full_keys where full_keys.key = before.concurrency_key)
             and not exists (select from open_circuits where open_circuits.name = before.circuit
                                                and before.id <> all(coalesce(open_circuits.let_through, '{}'::uuid[])))
             and (before.deadline is null or before.deadline > statement_timestamp())
             and (before.start_deadline is null or before.attempt_count > 0
                  or before.start_deadline > statement_timestamp())),
       count(*) = %(cap)s
  from before;
