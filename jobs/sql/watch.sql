-- watch.sql: a web process has somebody who looks; to be said again before it expires. Old ones are forgotten
-- params   id uuid (of the process's start), for_s float8
-- returns  nothing
-- locks    the row of this process, and rows that have long expired, until commit
-- index    primary key of event_watchers
with forgotten as (
    delete from event_watchers
     where expires_at < clock_timestamp() - interval '1 hour' and id <> %(id)s::uuid
)
insert into event_watchers (id, expires_at)
values (%(id)s::uuid, clock_timestamp() + make_interval(secs => %(for_s)s))
    on conflict (id) do update set expires_at = excluded.expires_at;
