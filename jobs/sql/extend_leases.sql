-- extend_leases.sql: push the ends of the leases a worker says it holds
-- params   ids uuid[], tokens uuid[], leases_s int[]
-- returns  token, is_cancel_requested    of those that are still its own
-- locks    the rows until commit, in the order of their ids
-- index    primary key of jobs; no index holds lease_expires_at, so the update stays in its page
with held as materialized (
    select held.id, held.token, held.lease_s
      from unnest(%(ids)s::uuid[], %(tokens)s::uuid[], %(leases_s)s::int[]) as held(id, token, lease_s)
     order by held.id
)
update jobs as job
   set lease_expires_at = clock_timestamp() + make_interval(secs => held.lease_s)
  from held
 where job.id = held.id
   and job.lease_token = held.token
returning job.lease_token::text, job.cancel_requested_at is not null;
