-- drop_months.sql: drop the partitions whose month ended before the retention
-- params   parent text, keep_days int
-- returns  nothing
-- locks    the parent, exclusively, for the moment of the drop; gives up after half a second and is tried again later
-- index    none
do $body$
declare
  part record;
begin
  perform set_config('lock_timeout', '500ms', true);
  for part in
    select child.relname, to_date(right(child.relname, 7), 'YYYY_MM') as month
      from pg_inherits as link
      join pg_class as child on child.oid = link.inhrelid
     where link.inhparent = to_regclass(%(parent)s)
       and child.relname ~ '_[0-9]{4}_[0-9]{2}$'
  loop
    if part.month + interval '1 month' < clock_timestamp() - make_interval(days => %(keep_days)s) then
      execute format('drop table %%I', part.relname);
    end if;
  end loop;
end $body$;
