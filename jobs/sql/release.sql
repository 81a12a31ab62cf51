-- release.sql: let go the jobs that waited for those just settled; runs right behind settle.sql, same transaction
-- params   none; the ended parents lie in a setting that settle.sql left. Mostly there are none: then the function is
--          not called at all
-- returns  queue_id    one row a job that is queued now
-- locks    the waiting jobs, in the order of their ids, before they are judged: of two last parents that end at once
--          the second sees the first
-- index    dependencies_of_parent
select queue_id::text
  from release_dependants(string_to_array(nullif(current_setting('punctual.ended_parents', true), ''), ',')::uuid[])
       as queue_id
 where nullif(current_setting('punctual.ended_parents', true), '') is not null;
