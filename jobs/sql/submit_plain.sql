-- submit_plain.sql: insert one new job that is due at once and asks for nothing special, and count it; what most submissions are, and the cheapest to plan
-- params   id, project_id, queue_id uuid; job_type, payload (JSON), circuit, trace_id text; priority int
-- returns  run_at, which created_at is too    in microseconds since 1970, which the driver reads at once
-- locks    none but the new rows
-- index    none is looked at
with counted as (
    insert into job_stat_deltas (project_id, queue_id, job_type, at, created)
    values (%(project_id)s, %(queue_id)s, %(job_type)s, statement_timestamp(), 1)
)
insert into jobs (id, project_id, queue_id, job_type, payload, priority, status, run_at, circuit, trace_id, created_at,
                  updated_at)
values (%(id)s, %(project_id)s, %(queue_id)s, %(job_type)s, %(payload)s, %(priority)s, 'queued', statement_timestamp(),
        %(circuit)s, %(trace_id)s, statement_timestamp(), statement_timestamp())
returning (extract(epoch from run_at) * 1000000)::int8;
