-- prune_heartbeats.sql: forget old heartbeats, and workers that ended long ago, a few at a time
-- params   keep_s float8, limit int
-- returns  nothing
-- locks    the rows until commit
-- index    heartbeats_of_worker
with old as materialized (
    select heartbeat.id
      from worker_heartbeats as heartbeat
     where heartbeat.ts < clock_timestamp() - make_interval(secs => %(keep_s)s)
     order by heartbeat.id
     limit %(limit)s
)
delete from worker_heartbeats
 using old
 where worker_heartbeats.id = old.id;
