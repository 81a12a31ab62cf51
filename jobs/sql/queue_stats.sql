-- queue_stats.sql: count what waits and runs in the next few queues, and keep it with the time
-- params   after uuid (the last queue looked at), limit int (queues at once), cap int (no count goes further)
-- returns  queue_id    of the queues looked at, in order
-- locks    the rows of queue_stats it writes
-- index    jobs_ready, jobs_scheduled, jobs_blocked, jobs_in_flight, each from its own entries. A claim's order is the
--          order of counting: beyond the cap the oldest is that of the jobs next in turn
insert into queue_stats (project_id, queue_id, ready, scheduled, blocked, claimed, running, dead_letters, is_capped,
                         oldest_run_at, as_of)
select queue.project_id, queue.id, ready.n, later.n, blocked.n, flight.claimed, flight.running, dead.n,
       greatest(ready.n, later.n, dead.n) >= %(cap)s, ready.oldest, statement_timestamp()
  from (select id, project_id from queues where deleted_at is null and id > %(after)s::uuid
         order by id limit %(limit)s) as queue
 cross join lateral (
       select count(*) as n, min(run_at) as oldest
         from (select run_at from jobs where queue_id = queue.id and status = 'queued' limit %(cap)s) as few) as ready
 cross join lateral (
       select count(*) as n
         from (select from jobs where queue_id = queue.id and status = 'scheduled' limit %(cap)s) as few) as later
 cross join lateral (
       select count(*) as n
         from (select from jobs where queue_id = queue.id and status = 'scheduled' and is_blocked
                limit %(cap)s) as few) as blocked
 cross join lateral (
       select count(*) filter (where status = 'claimed') as claimed,
              count(*) filter (where status = 'running') as running
         from jobs where queue_id = queue.id and status in ('claimed', 'running')) as flight
 cross join lateral (
       select count(*) as n
         from (select from dead_letter_queue where queue_id = queue.id and not resolved limit %(cap)s) as few) as dead
 order by queue.id
    on conflict (project_id, queue_id) do update
   set ready = excluded.ready, scheduled = excluded.scheduled, blocked = excluded.blocked, claimed = excluded.claimed,
       running = excluded.running, dead_letters = excluded.dead_letters, is_capped = excluded.is_capped,
       oldest_run_at = excluded.oldest_run_at, as_of = excluded.as_of
returning queue_id::text;
