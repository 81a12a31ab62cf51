-- extend_leases.sql: push the ends of the leases a worker says it holds
-- params   ids uuid[], tokens uuid[], leases_s int[]
-- returns  token, is_cancel_requested, is_extended    of those that are still its own; a row that somebody else has
--          locked is not waited for, or the leases behind it would lapse: it is still ours, and the next beat's work
-- locks    the rows until commit, in the order of their ids; rows locked by others are skipped
-- index    primary key of jobs; no index holds lease_expires_at, so the update stays in its page
with held as materialized (
    select held.id, held.token, held.lease_s
      from unnest(%(ids)s::uuid[], %(tokens)s::uuid[], %(leases_s)s::int[]) as held(id, token, lease_s)
     order by held.id
), free as materialized (
    select job.id, job.lease_token, held.lease_s
      from held
      join jobs as job on job.id = held.id and job.lease_token = held.token
     order by job.id
       for no key update of job skip locked
), extended as (
    update jobs as job
       set lease_expires_at = clock_timestamp() + make_interval(secs => free.lease_s)
      from free
     where job.id = free.id
       and job.lease_token = free.lease_token
    returning job.lease_token
)
select job.lease_token::text, job.cancel_requested_at is not null,
       exists (select 1 from extended where extended.lease_token = job.lease_token)
  from held
  join jobs as job on job.id = held.id and job.lease_token = held.token;
