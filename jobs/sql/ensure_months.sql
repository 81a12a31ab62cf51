-- ensure_months.sql: make the partitions of this month and the next ones, moving in what the default one caught
-- params   parent text, key text (its time column), months int (how many ahead)
-- returns  nothing
-- locks    the parent, exclusively, for the moment a partition is attached; nothing when all months are there. Gives up
--          after half a second and is tried again later
-- index    none
do $body$
declare
  month date;
  part  text;
begin
  perform set_config('lock_timeout', '500ms', true);
  for ahead in 0..%(months)s loop
    month := date_trunc('month', now() at time zone 'UTC')::date + make_interval(months => ahead);
    part := %(parent)s || to_char(month, '"_"YYYY_MM');
    -- No parent: migrations were taken back to before it.
    continue when to_regclass(%(parent)s) is null or to_regclass(part) is not null;
    execute format('create table %%I (like %%I including defaults including constraints including indexes)',
                   part, %(parent)s);
    execute format('with moved as (delete from %%I where %%I >= %%L and %%I < %%L returning *) insert into %%I select * from moved',
                   %(parent)s || '_default', %(key)s, month::timestamp at time zone 'UTC', %(key)s,
                   (month + interval '1 month')::timestamp at time zone 'UTC', part);
    execute format('alter table %%I attach partition %%I for values from (%%L) to (%%L)', %(parent)s, part,
                   month::timestamp at time zone 'UTC', (month + interval '1 month')::timestamp at time zone 'UTC');
  end loop;
end $body$;
