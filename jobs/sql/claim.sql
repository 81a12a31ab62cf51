-- claim.sql: hand queued jobs to one worker, most urgent first; runs right behind open_queues.sql, same transaction
-- params   queue_ids uuid[], seats int[] (how many from each), from_ranks int[], from_run_ats timestamptz[],
--          from_ids uuid[] (where to start in each queue: the position behind the last claim, past dead entries),
--          types text[], patterns text[], worker_id uuid, starts int (so many are handed over as running)
-- returns  the leases: id, token, queue, type, payload, attempt_count, fencing_number, lease_s, claimed_at, trace_id,
--          is_running, priority, run_at, place, circuit, project, timeout_s, lost_count, room (so many seats its queue's
--          limit left of those wanted)    0..sum(seats) rows; place counts within the answer
-- locks    the picked rows until commit; rows locked by others are skipped
-- index    jobs_ready (queue_id, (-priority), run_at, id) where status = 'queued'; jobs_in_flight for the count;
--          circuit_breakers_not_trusted. Gated queues (a rate, concurrency keys) are claim_gated.sql's.
with wanted as materialized (
    select want.queue_id, want.from_rank, want.from_run_at, want.from_id, queue.visibility_timeout_secs as lease_s,
           broken.circuits, broken.let_through,
           case
             when queue.max_concurrency is null
               then case when queue.id::text = any(string_to_array(current_setting('punctual.unlimited_queues'), ','))
                         then want.seats else 0 end
             when queue.id::text = any(string_to_array(current_setting('punctual.limited_queues'), ','))
               then greatest(0, least(want.seats, queue.max_concurrency - (
                        select count(*) from jobs as busy
                         where busy.queue_id = queue.id and busy.status in ('claimed', 'running'))))
             else 0
           end as seats
      from unnest(%(queue_ids)s::uuid[], %(seats)s::int[], %(from_ranks)s::int[], %(from_run_ats)s::timestamptz[],
                  %(from_ids)s::uuid[]) as want(queue_id, seats, from_rank, from_run_at, from_id)
      join queues as queue on queue.id = want.queue_id
      left join lateral (   -- breakers that are open, or let some chosen jobs through; nearly always none
           select array_agg(breaker.name) as circuits,
                  string_to_array(string_agg(nullif(array_to_string(breaker.let_through, ','), ''), ','), ',')::uuid[] as let_through
             from circuit_breakers as breaker
            where breaker.project_id = queue.project_id
              and (breaker.state in ('open', 'half_open') or breaker.allowance is not null)) as broken on true
     where not queue.is_paused
       and not queue.is_gated
       and queue.deleted_at is null
), picked as materialized (   -- fence: re-planned into a join it could touch more rows than there are seats
    select ready.id, ready.project_id, wanted.lease_s, wanted.seats as room, row_number() over () as place
      from wanted
     cross join lateral (
           select job.id, job.project_id
             from jobs as job
            where job.status = 'queued'
              and job.queue_id = wanted.queue_id
              and (-job.priority, job.run_at, job.id) > (wanted.from_rank, wanted.from_run_at, wanted.from_id)
              and (job.job_type = any(%(types)s::text[]) or job.job_type like any(%(patterns)s::text[]))
              and (wanted.circuits is null or job.circuit is null or job.circuit <> all(wanted.circuits)
                   or job.id = any(wanted.let_through))
              and (job.deadline is null or job.deadline > statement_timestamp())
              and (job.start_deadline is null or job.attempt_count > 0 or job.start_deadline > statement_timestamp())
            order by -job.priority, job.run_at, job.id
            limit wanted.seats
              for no key update skip locked) as ready
), stamp as materialized (
    -- The moment of the pick: the statement's own is earlier by all that it waited. It is also the first half of a
    -- version 7 UUID: tokens go to the right edge of the history's key.
    select substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-7' as head, at
      from clock_timestamp() as at
     cross join lateral lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') as hex
)
update jobs as job
   set status           = case when picked.place <= %(starts)s then 'running' else 'claimed' end,
       locked_by        = %(worker_id)s,
       locked_at        = stamp.at,
       lease_token      = (stamp.head || substr(gen_random_uuid()::text, 16))::uuid,
       lease_expires_at = stamp.at + make_interval(secs => picked.lease_s),
       fencing_number   = job.fencing_number + 1,
       updated_at       = stamp.at
  from picked, stamp
 where job.id = picked.id
   and job.project_id = picked.project_id
returning job.id::text, job.lease_token::text, job.queue_id::text, job.job_type, job.payload::text,
          job.attempt_count, job.fencing_number, picked.lease_s, job.locked_at::text, job.trace_id,
          job.status = 'running', job.priority, job.run_at::text, picked.place, job.circuit, job.project_id::text,
          job.timeout_s, job.lost_count, picked.room;
