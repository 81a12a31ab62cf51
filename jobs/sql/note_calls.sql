-- note_calls.sql: what the ended attempts tell about their circuits: it opens them, closes them, or lets more through
-- params   project_ids uuid[], names text[], outcomes text[] (of each circuit's calls in order: '0' went well, '1' went
--          wrong), good_ids uuid[], bad_ids uuid[] (the jobs, of all circuits), remembered int (outcomes kept), least
--          int (so many before it may open), growth int, most int (an allowance beyond it is no bound any more)
-- returns  project_id, name, is_open    of the circuits that are not trusted now
-- locks    the breakers, in the order of (project, name), after the jobs
-- index    circuit_breakers_name_in_project
with held as materialized (   -- everything is read here: behind a lock that was waited for, this is the newest state
    select breaker.id, breaker.project_id, breaker.state, breaker.allowance,
           right(breaker.recent || call.outcomes, %(remembered)s) as recent,
           breaker.let_through && %(bad_ids)s::uuid[] as went_wrong,
           breaker.let_through && %(good_ids)s::uuid[] as went_well,
           array(select id from unnest(breaker.let_through) as id
                  where id <> all(%(good_ids)s::uuid[]) and id <> all(%(bad_ids)s::uuid[])) as still_out
      from unnest(%(project_ids)s::uuid[], %(names)s::text[], %(outcomes)s::text[]) as call(project_id, name, outcomes)
      join circuit_breakers as breaker on breaker.project_id = call.project_id and breaker.name = call.name
     order by breaker.project_id, breaker.name
       for no key update of breaker
), judged as (
    select *,
           (state = 'half_open' and went_wrong)
             or (state = 'closed' and length(recent) >= %(least)s
                 and 2 * length(replace(recent, '0', '')) >= length(recent)) as opens,
           state = 'half_open' and went_well and not went_wrong as closes
      from held
), noted as (
    update circuit_breakers as breaker
       set state       = case when judged.opens then 'open' when judged.closes then 'closed' else judged.state end,
           opened_at   = case when judged.opens then statement_timestamp()
                              when judged.closes then null else breaker.opened_at end,
           recent      = case when judged.closes then ''
                              when judged.state = 'open' then breaker.recent else judged.recent end,
           allowance   = case when judged.opens or judged.allowance is null then null
                              when not judged.went_well or cardinality(judged.still_out) > 0 then judged.allowance
                              when judged.allowance * %(growth)s > %(most)s then null
                              else judged.allowance * %(growth)s end,
           let_through = case when judged.opens then '{}'::uuid[] else judged.still_out end,
           updated_at  = statement_timestamp()
      from judged
     where breaker.id = judged.id
       and breaker.project_id = judged.project_id
    returning breaker.project_id, breaker.name, breaker.state, breaker.allowance
)
select project_id::text, name, state = 'open'
  from noted
 where state <> 'closed' or allowance is not null;
