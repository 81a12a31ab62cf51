-- archive.sql: move ended jobs past their retention out of the hot table, a few at a time, with what hangs on them
-- params   project_ids uuid[] (null = all but others), others uuid[], keep_s float8, after uuid (walked so far),
--          below uuid (no older job has an id from here on), limit int
-- returns  walked, moved    the last id looked at (null: none was left) and how many were moved
-- locks    the moved rows until commit; rows locked by others are skipped
-- index    primary key of jobs, whose ids are in the order of creation
with walked as materialized (
    select job.id, job.project_id, job.status, job.completed_at, job.batch_id, job.has_dependants
      from jobs as job
     where job.id > %(after)s::uuid
       and job.id < %(below)s::uuid
       and job.created_at < clock_timestamp() - make_interval(secs => %(keep_s)s)
     order by job.id
     limit %(limit)s
), old as materialized (
    select job.id, job.project_id
      from jobs as job
      join walked on walked.id = job.id and walked.project_id = job.project_id
     where job.status in ('completed', 'failed', 'dead_letter', 'cancelled')   -- judged again under the row's lock
       and job.completed_at < clock_timestamp() - make_interval(secs => %(keep_s)s)
       and (walked.project_id = any(%(project_ids)s::uuid[])
            or (%(project_ids)s::uuid[] is null and walked.project_id <> all(%(others)s::uuid[])))
       and not exists (select 1 from job_batches as batch
                        where batch.id = walked.batch_id and batch.status in ('open', 'running'))
       -- A job that waits for this one still needs to see how it ended.
       and not (walked.has_dependants and exists (
               select 1
                 from job_dependencies as edge
                 join jobs as child on child.id = edge.job_id
                where edge.depends_on_job_id = walked.id
                  and child.status not in ('completed', 'failed', 'dead_letter', 'cancelled')))
     order by job.id
       for update of job skip locked
), gone as (
    delete from jobs as job
     using old
     where job.id = old.id
       and job.project_id = old.project_id
       and job.lease_token is null
    returning job.*
), edges as (
    delete from job_dependencies as edge
     using gone
     where edge.job_id = gone.id or edge.depends_on_job_id = gone.id
), executions as (
    delete from job_executions as execution
     using gone
     where execution.job_id = gone.id
), kept as (
    insert into jobs_archive (id, project_id, queue_id, scheduled_job_id, batch_id, job_type, payload, priority, status,
                              run_at, idempotency_key, attempt_count, result, error_message, trace_id, created_at,
                              completed_at, archived_at)
    select id, project_id, queue_id, scheduled_job_id, batch_id, job_type, payload, priority, status, run_at,
           idempotency_key, attempt_count, result, error_message, trace_id, created_at, completed_at, clock_timestamp()
      from gone
    returning id
)
select (select id::text from walked order by id desc limit 1), (select count(*) from kept);
