-- queues_now.sql: how the live queues are, as the leader counted them last, and what came and went lately
-- params   project_ids uuid[] (null = all)
-- returns  id, project_id, name, organization/project/queue, is_paused, max_concurrency, ready, scheduled, claimed,
--          running, dead_letters, is_capped, oldest_age_s, arrivals_per_s, completions_per_s, as_of    by path; the
--          counts are 0 and as_of is null for a queue nobody has counted yet; rates over this and the last whole minute
-- locks    none
-- index    the primary keys of queue_stats and job_stats: no job is counted here
select queue.id, queue.project_id, queue.name, place.path, queue.is_paused, queue.max_concurrency,
       coalesce(stat.ready, 0), coalesce(stat.scheduled, 0), coalesce(stat.claimed, 0), coalesce(stat.running, 0),
       coalesce(stat.dead_letters, 0), coalesce(stat.is_capped, false),
       case when stat.oldest_run_at is not null
            then round(greatest(0, extract(epoch from span.now - stat.oldest_run_at)), 3)::float8 end,
       round(coalesce(rate.created, 0) / span.secs, 3)::float8,
       round(coalesce(rate.completed, 0) / span.secs, 3)::float8,
       stat.as_of
  from queues as queue
  join projects as project on project.id = queue.project_id and project.deleted_at is null
  join organizations as organization on organization.id = project.organization_id
 cross join lateral (select organization.slug || '/' || project.slug || '/' || queue.name as path) as place
 cross join (select statement_timestamp() as now, minute.began,
                    extract(epoch from statement_timestamp() - minute.began) as secs
               from (select date_trunc('minute', statement_timestamp()) - interval '1 minute' as began) as minute) as span
  left join queue_stats as stat on stat.project_id = queue.project_id and stat.queue_id = queue.id
  left join (select project_id, queue_id, sum(created) as created, sum(completed) as completed
               from job_stats
              where grain = 'minute'
                and at >= date_trunc('minute', statement_timestamp()) - interval '1 minute'
                and (%(project_ids)s::uuid[] is null or project_id = any(%(project_ids)s::uuid[]))
              group by project_id, queue_id) as rate
    on rate.project_id = queue.project_id and rate.queue_id = queue.id
 where queue.deleted_at is null
   and (%(project_ids)s::uuid[] is null or queue.project_id = any(%(project_ids)s::uuid[]))
 order by place.path collate "C";
