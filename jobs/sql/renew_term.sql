-- renew_term.sql: show that the leader is at work
-- params   term bigint
-- returns  id    no row if this is not the session that became leader
-- locks    the row until commit
-- index    primary key of leader_terms
update leader_terms
   set renewed_at = clock_timestamp()
 where id = %(term)s
   and backend_pid = pg_backend_pid()
   and ended_at is null
returning id;
