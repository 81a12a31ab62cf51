-- publish.sql: tell the web processes what has changed; the moment is put in front of each message
-- params   payloads text[] (each below 7900 bytes)
-- returns  nothing of use
-- locks    the database's notification lock at commit, so it goes in a transaction of its own; which waits for no disk
-- index    none
select set_config('synchronous_commit', 'off', true),
       pg_notify('punctual_events',
                 to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ' || payload)
  from unnest(%(payloads)s::text[]) as payload;
