-- spend_rate.sql: write what a gated queue's bucket holds after a claim, same transaction as open_gate.sql
-- params   queue_id uuid, tokens float8 (what is left), at timestamptz (as of when)
-- returns  nothing
-- locks    the bucket's row until commit; only the holder of the queue's row comes here
-- index    primary key of token_buckets
insert into token_buckets (key, tokens, refilled_at)
values ('queue:' || %(queue_id)s::text, %(tokens)s, %(at)s::timestamptz)
    on conflict (key) do update set tokens = excluded.tokens, refilled_at = excluded.refilled_at;
