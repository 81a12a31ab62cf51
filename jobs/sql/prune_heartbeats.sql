-- prune_heartbeats.sql: forget old heartbeats, a few at a time, and workers that ended and have none left
-- params   keep_s float8, limit int
-- returns  nothing
-- locks    the rows until commit
-- index    primary keys: heartbeats are numbered in the order of time, so only the oldest are looked at
with oldest as materialized (
    select id, ts
      from worker_heartbeats
     order by id
     limit %(limit)s
), forgotten as (
    delete from worker_heartbeats as heartbeat
     using oldest
     where heartbeat.id = oldest.id
       and oldest.ts < clock_timestamp() - make_interval(secs => %(keep_s)s)
)
delete from workers as worker
 where worker.status in ('stopped', 'lost')
   and worker.last_seen_at < clock_timestamp() - 2 * make_interval(secs => %(keep_s)s)
   and not exists (select 1 from worker_heartbeats as heartbeat where heartbeat.worker_id = worker.id);
