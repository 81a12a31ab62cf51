-- let_through.sql: choose the jobs that may run although their circuit is not trusted; the leader's
-- params   cool_down_s float8 (an open circuit is probed this long after it opened), look_at int (of so many of the oldest
--          jobs those with the fewest attempts are chosen: a long outage must not cost one of them all of its own)
-- returns  state, project_id, name, queue_ids text[] (of the chosen jobs)    of the breakers that changed
-- locks    the breakers; those that are being written are left for the next round
-- index    circuit_breakers_not_trusted; jobs_of_circuit and the primary keys of jobs and queues
with due as materialized (
    select breaker.id, breaker.project_id, breaker.name, breaker.state, breaker.allowance, breaker.let_through
      from circuit_breakers as breaker
     where (breaker.state = 'open' and breaker.opened_at <= statement_timestamp() - make_interval(secs => %(cool_down_s)s))
        or breaker.allowance is not null
     order by breaker.project_id, breaker.name
       for no key update skip locked
), looked_at as materialized (
    select due.*,
           array(select job.id   -- chosen before, and still to run or running
                   from jobs as job
                   join queues as queue on queue.id = job.queue_id
                  where job.project_id = due.project_id
                    and job.id = any(due.let_through)
                    and (job.status in ('claimed', 'running')
                         or (job.status = 'queued' and not queue.is_paused and queue.deleted_at is null))) as alive
      from due
), chosen as materialized (
    select looked_at.*, new.ids, new.queue_ids
      from looked_at
     cross join lateral (
           select array_agg(id) as ids, array_agg(distinct queue_id::text) as queue_ids
             from (select waiting.id, waiting.queue_id
                     from (select job.id, job.queue_id, job.attempt_count
                             from jobs as job
                             join queues as queue on queue.id = job.queue_id
                            where cardinality(looked_at.alive) = 0
                              and job.status = 'queued'
                              and job.project_id = looked_at.project_id
                              and job.circuit = looked_at.name
                              and not queue.is_paused
                              and queue.deleted_at is null
                            order by job.id
                            limit %(look_at)s) as waiting
                    order by waiting.attempt_count, waiting.id
                    limit coalesce(looked_at.allowance, 1)) as job) as new
)
update circuit_breakers as breaker   -- half open without a job to probe with: open, and due; closing without: closed
   set state       = case when chosen.state = 'closed' then 'closed'
                          when cardinality(chosen.alive) > 0 or chosen.ids is not null then 'half_open' else 'open' end,
       allowance   = case when cardinality(chosen.alive) = 0 and chosen.ids is null then null
                          else coalesce(chosen.allowance, 1) end,
       let_through = case when cardinality(chosen.alive) > 0 then chosen.alive else coalesce(chosen.ids, '{}') end,
       updated_at  = statement_timestamp()
  from chosen
 where breaker.id = chosen.id
   and breaker.project_id = chosen.project_id
   and (chosen.ids is not null or chosen.alive <> chosen.let_through
        or (chosen.allowance is not null and cardinality(chosen.alive) = 0))
returning breaker.state, breaker.project_id::text, breaker.name, chosen.queue_ids;
