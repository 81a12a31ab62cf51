-- claim_gated.sql: claim from one queue with a rate or concurrency keys; runs behind open_gate.sql, same transaction
-- params   queue_id uuid, seats int (what room and rate allow), key_limit int, lease_s int, look_at int (so many rows
--          in order are looked at), types text[], patterns text[], worker_id uuid, starts int
-- returns  the leases, as claim.sql
-- locks    the picked rows until commit; the queue's row is held alone, so the counts of the keys can not change
-- index    jobs_ready; jobs_keyed_in_flight for the keys' counts. Jobs of keys that are full, and of circuits that are
--          open, are walked past.
with busy as materialized (
    select concurrency_key, count(*) as in_flight
      from jobs
     where queue_id = %(queue_id)s
       and status in ('claimed', 'running')
       and concurrency_key is not null
     group by concurrency_key
), blocked as materialized (
    select (select array_agg(concurrency_key) from busy where in_flight >= %(key_limit)s) as keys,
           array_agg(breaker.name) as circuits,
           string_to_array(string_agg(nullif(array_to_string(breaker.let_through, ','), ''), ','), ',')::uuid[] as let_through
      from circuit_breakers as breaker
     where breaker.project_id = (select project_id from queues where id = %(queue_id)s)
       and (breaker.state in ('open', 'half_open') or breaker.allowance is not null)
), seen as materialized (
    select job.id, job.project_id, job.concurrency_key, row_number() over () as place
      from blocked
     cross join lateral (
           select job.id, job.project_id, job.concurrency_key
             from jobs as job
            where job.status = 'queued'
              and job.queue_id = %(queue_id)s
              and (job.job_type = any(%(types)s::text[]) or job.job_type like any(%(patterns)s::text[]))
              and (blocked.keys is null or job.concurrency_key is null or job.concurrency_key <> all(blocked.keys))
              and (blocked.circuits is null or job.circuit is null or job.circuit <> all(blocked.circuits)
                   or job.id = any(blocked.let_through))
              and (job.deadline is null or job.deadline > statement_timestamp())
              and (job.start_deadline is null or job.attempt_count > 0 or job.start_deadline > statement_timestamp())
            order by -job.priority, job.run_at, job.id
            limit %(look_at)s) as job
), fitting as materialized (
    select id, project_id, place
      from (select seen.*, row_number() over (partition by seen.concurrency_key order by seen.place)
                           + coalesce(busy.in_flight, 0) as nth
              from seen
              left join busy using (concurrency_key)) as counted
     where concurrency_key is null or nth <= %(key_limit)s
     order by place
     limit %(seats)s
), picked as materialized (   -- others may have cancelled them meanwhile
    select job.id, job.project_id, fitting.place
      from fitting
      join jobs as job on job.id = fitting.id and job.project_id = fitting.project_id
     where job.status = 'queued'
       for no key update of job skip locked
), stamp as materialized (   -- as in claim.sql
    select substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-7' as head, at
      from clock_timestamp() as at
     cross join lateral lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') as hex
)
update jobs as job
   set status           = case when picked.place <= %(starts)s then 'running' else 'claimed' end,
       locked_by        = %(worker_id)s,
       locked_at        = stamp.at,
       lease_token      = (stamp.head || substr(gen_random_uuid()::text, 16))::uuid,
       lease_expires_at = stamp.at + make_interval(secs => %(lease_s)s),
       fencing_number   = job.fencing_number + 1,
       updated_at       = stamp.at
  from picked, stamp
 where job.id = picked.id
   and job.project_id = picked.project_id
returning job.id::text, job.lease_token::text, job.queue_id::text, job.job_type, job.payload::text,
          job.attempt_count, job.fencing_number, %(lease_s)s::int, job.locked_at::text, job.trace_id,
          job.status = 'running', job.priority, job.run_at::text, picked.place, job.circuit, job.project_id::text,
          job.timeout_s, job.lost_count, %(seats)s::int;
