-- lead.sql: become the leader, if nobody is
-- params   lock_id bigint, hostname text, pid int
-- returns  id    the new term, or no row
-- locks    the advisory lock, until this session ends: whoever loses the session loses the leadership
-- index    none
insert into leader_terms (hostname, pid, backend_pid, acquired_at, renewed_at)
select %(hostname)s, %(pid)s, pg_backend_pid(), clock_timestamp(), clock_timestamp()
 where pg_try_advisory_lock(%(lock_id)s)
returning id;
