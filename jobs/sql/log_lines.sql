-- log_lines.sql: store what handlers logged, while their lease holds
-- params   arrays of one length: job_ids, tokens, ago_ms, levels, messages
-- returns  nothing; lines of a lost lease are dropped
-- locks    none
-- index    primary key of jobs; the lease_token is the fence
insert into job_logs (project_id, execution_id, job_id, ts, level, message)
select job.project_id, line.token, job.id, clock_timestamp() - make_interval(secs => line.ago_ms / 1000.0),
       line.level, line.message
  from unnest(%(job_ids)s::uuid[], %(tokens)s::uuid[], %(ago_ms)s::float8[], %(levels)s::text[],
              %(messages)s::text[]) with ordinality as line(job_id, token, ago_ms, level, message, place)
  join jobs as job on job.id = line.job_id and job.lease_token = line.token
 order by line.place;
