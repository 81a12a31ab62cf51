-- open_gate.sql: what a gated queue lets through now; runs behind open_queues.sql, same transaction
-- params   queue_id uuid
-- returns  key_limit, lease_s, room (null = no max_concurrency), tokens (null = no rate), per_s, at    no row: another
--          claimer is at it, or the queue is paused, deleted or not gated
-- locks    none of its own: open_queues.sql holds the queue's row, and with it the queue's bucket
-- index    primary keys of queues and token_buckets; jobs_in_flight for the count
select queue.max_concurrency_per_key,
       queue.visibility_timeout_secs,
       queue.max_concurrency - (select count(*) from jobs as busy
                                 where queue.max_concurrency is not null
                                   and busy.queue_id = queue.id and busy.status in ('claimed', 'running')),
       case when queue.rate_limit is not null
            then least(queue.rate_limit, coalesce(
                     bucket.tokens + queue.rate_limit::float8 / queue.rate_period_secs
                                     * greatest(0.0, extract(epoch from statement_timestamp() - bucket.refilled_at)),
                     queue.rate_limit)) end::float8,
       queue.rate_limit::float8 / queue.rate_period_secs,
       statement_timestamp()::text
  from queues as queue
  left join token_buckets as bucket on bucket.key = 'queue:' || queue.id::text
 where queue.id = %(queue_id)s
   and queue.is_gated
   and not queue.is_paused
   and queue.deleted_at is null
   and queue.id::text = any(string_to_array(current_setting('punctual.limited_queues'), ','));
