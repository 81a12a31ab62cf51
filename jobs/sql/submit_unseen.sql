-- submit_unseen.sql: find a queue of a project and insert one new job that is due at once and asks for nothing special, and count it
-- params   id, project_id uuid; queue_id uuid or null; name (the queue's) text or null: one of the two; job_type, payload (JSON), circuit, trace_id, idempotency_key text; priority int
-- returns  queue_id, run_at, which created_at is too    in microseconds since 1970, which the driver reads at once; no row if there is no such queue or the key was taken already
-- locks    none but the new rows; waits for a running submission of the same key
-- index    the primary one of queues, or that of a project's names; jobs_idempotency_key
with queue as materialized (
    select queues.id, queues.project_id
      from queues
     where queues.project_id = %(project_id)s
       and queues.deleted_at is null
       and (%(queue_id)s::uuid is null or queues.id = %(queue_id)s::uuid)
       and (%(name)s::text is null or queues.name = %(name)s::text)
), inserted as (
    insert into jobs (id, project_id, queue_id, job_type, payload, priority, status, run_at, circuit, trace_id,
                      idempotency_key, created_at, updated_at)
    select %(id)s, queue.project_id, queue.id, %(job_type)s, %(payload)s, %(priority)s, 'queued',
           statement_timestamp(), %(circuit)s, %(trace_id)s, %(idempotency_key)s, statement_timestamp(),
           statement_timestamp()
      from queue
    -- part keyed
        on conflict (project_id, queue_id, idempotency_key) where idempotency_key is not null do nothing
    -- end of keyed
    returning project_id, queue_id, run_at
), counted as (
    insert into job_stat_deltas (project_id, queue_id, job_type, at, created)
    select project_id, queue_id, %(job_type)s, statement_timestamp(), 1
      from inserted
)
select queue_id, (extract(epoch from run_at) * 1000000)::int8
  from inserted;
