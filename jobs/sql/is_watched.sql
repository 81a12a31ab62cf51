-- is_watched.sql: does any web process have somebody who looks at live events?
-- params   none
-- returns  one row: true or false
-- locks    none
-- index    none; the table has one row for each web process
select exists (select 1 from event_watchers where expires_at > clock_timestamp());
