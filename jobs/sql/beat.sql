-- beat.sql: say that a worker lives, and how it is
-- params   worker_id uuid, status text, active int, cpu float8, memory_mb float8, metadata json text
-- returns  nothing
-- locks    the worker's row until commit
-- index    primary key of workers
with seen as (
    update workers
       set last_seen_at = clock_timestamp(), status = %(status)s
     where id = %(worker_id)s
    returning id
)
insert into worker_heartbeats (worker_id, ts, active_job_count, cpu_percent, memory_mb, metadata)
select id, clock_timestamp(), %(active)s, %(cpu)s, %(memory_mb)s, %(metadata)s::jsonb
  from seen;
