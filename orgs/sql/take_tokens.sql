-- take_tokens.sql: refill a bucket by the time that has passed, and take tokens out of it
-- params   key text, rate float8 (tokens a second), burst float8 (what a full bucket holds), least float8 (so many or
--          none), most float8 (so many if there are)
-- returns  granted (0 = not enough), left float8    one row; none if the bucket was made by another at this moment:
--          ask again
-- locks    the bucket's row until commit: of two takers at once the second sees what the first has left
-- index    primary key of token_buckets
with held as materialized (
    select key, tokens, refilled_at
      from token_buckets
     where key = %(key)s
       for no key update
), full_now as materialized (
    select least(%(burst)s::float8, tokens + %(rate)s::float8 *
                 greatest(0.0, extract(epoch from statement_timestamp() - refilled_at)::float8)) as tokens,
           -- Never back: a statement that began earlier may get the lock later.
           greatest(refilled_at, statement_timestamp()) as at
      from held
     union all
    select %(burst)s::float8, statement_timestamp()
     where not exists (select from held)
), judged as materialized (
    select at, tokens,
           case when tokens >= %(least)s::float8 then least(%(most)s::float8, floor(tokens)) else 0.0 end as granted
      from full_now
), taken as (
    update token_buckets as bucket
       set tokens = judged.tokens - judged.granted, refilled_at = judged.at
      from judged, held
     where bucket.key = held.key
    returning judged.granted, bucket.tokens
), made as (
    insert into token_buckets (key, tokens, refilled_at)
    select %(key)s, judged.tokens - judged.granted, judged.at
      from judged
     where not exists (select from held)
        on conflict (key) do nothing
    returning (select granted from judged), tokens
)
select granted, tokens
  from taken
 union all
select granted, tokens
  from made;
