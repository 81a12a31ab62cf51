-- know_circuits.sql: make the breakers that calls are about to be noted for; runs right before note_calls.sql
-- params   ids uuid[], project_ids uuid[], names text[]    each pair once, in their order; ids for new ones
-- returns  nothing
-- locks    the new rows
-- index    circuit_breakers_name_in_project
insert into circuit_breakers (id, project_id, name)
select id, project_id, name
  from unnest(%(ids)s::uuid[], %(project_ids)s::uuid[], %(names)s::text[]) as call(id, project_id, name)
 order by project_id, name
    on conflict (project_id, name) do nothing;
