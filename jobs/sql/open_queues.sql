-- open_queues.sql: take the locks a claim needs, before the claim's own snapshot is taken, and have it planned by index
-- params   queue_ids uuid[], lock_class int (queues.locks.QUEUE_LOCK_CLASS)
-- returns  nothing of use; the ids lie in two settings of this transaction, which claim.sql reads
-- locks    limited and gated queues: their row, one claimer at a time, so that counting and claiming agree; others busy with
--          the same queue are not waited for. Unlimited queues: a shared advisory lock, which only pausing or
--          changing the queue waits for.
-- index    primary key of queues
-- plan     How many seats are wanted is not known to the planner: it takes a tenth of the waiting jobs, and with some ten
--          thousand of them it read the whole table for each claim. Of few rows by their keys a loop is right at any size.
with limited as materialized (
    select id
      from queues
     where id = any(%(queue_ids)s::uuid[])
       and (max_concurrency is not null or is_gated)
     order by id
       for no key update skip locked
), unlimited as materialized (
    select id
      from queues
     where id = any(%(queue_ids)s::uuid[])
       and max_concurrency is null
       and not is_gated
       and pg_try_advisory_xact_lock_shared(%(lock_class)s, hashtext(id::text))
)
select set_config('punctual.limited_queues', (select coalesce(string_agg(id::text, ','), '') from limited), true),
       set_config('punctual.unlimited_queues', (select coalesce(string_agg(id::text, ','), '') from unlimited), true),
       set_config('enable_seqscan', 'off', true),
       set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true);
