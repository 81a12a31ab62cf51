-- submit.sql: insert new jobs and count them, as queued or, if their time is to come or they must wait for another, as scheduled
-- params   one array per column, all of one length, or empty if each value is the default; of the first three columns
--          that is project_id, queue_id and job_type, else null, 0, '' or false; run_ats null means delay_s seconds from now (0 = at once)
-- returns  id, status, run_at, created_at    times in microseconds since 1970, which the driver reads at once; without the rows whose idempotency key was taken already
-- locks    none but the new rows; waits for a running submission of the same key
-- index    jobs_idempotency_key decides which of two is the first
with inserted as (
insert into jobs (id, project_id, queue_id, job_type, payload, priority, status, run_at, idempotency_key,
                  retry_policy_id, max_attempts_override, scheduled_job_id, batch_id, trace_id, is_blocked,
                  has_dependants, concurrency_key, circuit, timeout_s, start_deadline, deadline, created_at,
                  updated_at)
select item.id, coalesce(item.project_id, %(project_id)s), coalesce(item.queue_id, %(queue_id)s),
       coalesce(item.job_type, %(job_type)s), item.payload::jsonb, coalesce(item.priority, 0),
       case when item.is_blocked or due.at > statement_timestamp() then 'scheduled' else 'queued' end,
       due.at, item.idempotency_key, item.retry_policy_id, item.max_attempts_override, item.scheduled_job_id,
       item.batch_id, coalesce(item.trace_id, ''), coalesce(item.is_blocked, false),
       coalesce(item.has_dependants, false), item.concurrency_key, item.circuit, item.timeout_s,
       item.start_deadline, item.deadline, statement_timestamp(), statement_timestamp()
  from unnest(%(ids)s::uuid[], %(project_ids)s::uuid[], %(queue_ids)s::uuid[], %(job_types)s::text[],
              %(payloads)s::text[], %(priorities)s::int[], %(run_ats)s::timestamptz[], %(delays_s)s::float8[],
              %(idempotency_keys)s::text[], %(retry_policy_ids)s::uuid[], %(max_attempts)s::int[],
              %(scheduled_job_ids)s::uuid[], %(batch_ids)s::uuid[], %(trace_ids)s::text[], %(are_blocked)s::bool[],
              %(have_dependants)s::bool[], %(concurrency_keys)s::text[], %(circuits)s::text[],
              %(timeouts_s)s::float8[], %(start_deadlines)s::timestamptz[], %(deadlines)s::timestamptz[])
    as item(id, project_id, queue_id, job_type, payload, priority, run_at, delay_s, idempotency_key,
            retry_policy_id, max_attempts_override, scheduled_job_id, batch_id, trace_id, is_blocked, has_dependants,
            concurrency_key, circuit, timeout_s, start_deadline, deadline)
 cross join lateral (
       select coalesce(item.run_at,
                       statement_timestamp() + make_interval(secs => coalesce(item.delay_s, 0))) as at) as due
    on conflict (project_id, queue_id, idempotency_key) where idempotency_key is not null do nothing
returning id, project_id, queue_id, job_type, status, run_at, created_at
), counted as (
    insert into job_stat_deltas (project_id, queue_id, job_type, at, created)
    select project_id, queue_id, job_type, statement_timestamp(), count(*)
      from inserted
     group by project_id, queue_id, job_type
)
select id, status, (extract(epoch from run_at) * 1000000)::int8, (extract(epoch from created_at) * 1000000)::int8
  from inserted;
