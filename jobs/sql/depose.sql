-- depose.sql: end the session of a leader that sits on the lock and does nothing: a frozen process
-- params   lock_id bigint, idle_s float8
-- returns  pid    of the session ended, or no row
-- locks    none
-- index    none
with frozen as materialized (   -- fence: conditions have no order, and ending a session is not a condition
    select holder.pid
      from pg_locks as held
      join pg_stat_activity as holder on holder.pid = held.pid
     where held.locktype = 'advisory'
       and held.granted
       and held.database = (select oid from pg_database where datname = current_database())
       and (held.classid::bigint << 32) + held.objid::bigint = %(lock_id)s
       and held.objsubid = 1
       and holder.state in ('idle', 'idle in transaction', 'idle in transaction (aborted)')
       and holder.state_change < clock_timestamp() - make_interval(secs => %(idle_s)s)
)
select pid
  from frozen
 where pg_terminate_backend(pid);
