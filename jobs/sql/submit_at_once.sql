-- submit_at_once.sql: insert new jobs that are due at once and have no key, and count them: all are queued, so there is little to decide and to tell
-- params   one array per column, all of one length, or empty if each value is the default; of the first three columns
--          that is project_id, queue_id and job_type, else null, 0, '' or false; and one array per column of the counts
-- returns  run_at of all of them, which created_at is too    in microseconds since 1970, which the driver reads at once
-- locks    none but the new rows
-- index    none is looked at
with counted as (
    insert into job_stat_deltas (project_id, queue_id, job_type, at, created)
    select count.project_id, count.queue_id, count.job_type, statement_timestamp(), count.created
      from unnest(%(counted_projects)s::uuid[], %(counted_queues)s::uuid[], %(counted_types)s::text[],
                  %(counts)s::int[]) as count(project_id, queue_id, job_type, created)
), inserted as (
    insert into jobs (id, project_id, queue_id, job_type, payload, priority, status, run_at, retry_policy_id,
                      max_attempts_override, scheduled_job_id, batch_id, trace_id, has_dependants, concurrency_key,
                      circuit, timeout_s, start_deadline, deadline, created_at, updated_at)
    select item.id, coalesce(item.project_id, %(project_id)s), coalesce(item.queue_id, %(queue_id)s),
           coalesce(item.job_type, %(job_type)s), item.payload::jsonb, coalesce(item.priority, 0), 'queued',
           statement_timestamp(), item.retry_policy_id, item.max_attempts_override, item.scheduled_job_id,
           item.batch_id, coalesce(item.trace_id, ''), coalesce(item.has_dependants, false), item.concurrency_key,
           item.circuit, item.timeout_s, item.start_deadline, item.deadline, statement_timestamp(),
           statement_timestamp()
      from unnest(%(ids)s::uuid[], %(project_ids)s::uuid[], %(queue_ids)s::uuid[], %(job_types)s::text[],
                  %(payloads)s::text[], %(priorities)s::int[], %(retry_policy_ids)s::uuid[], %(max_attempts)s::int[],
                  %(scheduled_job_ids)s::uuid[], %(batch_ids)s::uuid[], %(trace_ids)s::text[],
                  %(have_dependants)s::bool[], %(concurrency_keys)s::text[], %(circuits)s::text[],
                  %(timeouts_s)s::float8[], %(start_deadlines)s::timestamptz[], %(deadlines)s::timestamptz[])
        as item(id, project_id, queue_id, job_type, payload, priority, retry_policy_id, max_attempts_override,
                scheduled_job_id, batch_id, trace_id, has_dependants, concurrency_key, circuit, timeout_s,
                start_deadline, deadline)
)
select (extract(epoch from statement_timestamp()) * 1000000)::int8;
