-- jobs_of_operation.sql: the next jobs that an operation looks at, in the order of their ids
-- params   queue_ids uuid[], statuses text[], after_id uuid, until_id uuid (ids in (after_id, until_id]),
--          frozen_at timestamptz (ends after it do not count), job_type text (null = any), limit int
-- returns  id, is_match    up to limit rows; with a type those of other types too, so that the look has an end
-- locks    none; the verb that follows locks and judges again
-- index    an arm for each: jobs_ended, jobs_scheduled, jobs_of_queue or jobs_ready, jobs_in_flight, which is small
select seen.id::text, (%(job_type)s::text is null or seen.job_type = %(job_type)s)
  from (select page.id, page.job_type
          from unnest(%(queue_ids)s::uuid[]) as wanted(queue_id)
         cross join unnest(%(statuses)s::text[]) as state(name)
         cross join lateral (
               select job.id, job.job_type
                 from jobs as job
                where job.queue_id = wanted.queue_id
                  and job.status = state.name
                  and job.status in ('completed', 'failed', 'dead_letter', 'cancelled')
                  and job.id > %(after_id)s
                  and job.id <= %(until_id)s
                  and job.completed_at <= %(frozen_at)s
                order by job.id
                limit %(limit)s) as page
         union all
        select page.id, page.job_type
          from unnest(%(queue_ids)s::uuid[]) as wanted(queue_id)
         cross join lateral (
               select job.id, job.job_type
                 from jobs as job
                where job.queue_id = wanted.queue_id
                  and job.status = 'scheduled'
                  and job.id > %(after_id)s
                  and job.id <= %(until_id)s
                order by job.id
                limit %(limit)s) as page
         where 'scheduled' = any(%(statuses)s::text[])
         union all
        select page.id, page.job_type
          from unnest(%(queue_ids)s::uuid[]) as wanted(queue_id)
         cross join lateral (
               select job.id, job.job_type
                 from jobs as job
                where job.queue_id = wanted.queue_id
                  and job.status = 'queued'
                  and job.id > %(after_id)s
                  and job.id <= %(until_id)s
                order by job.id
                limit %(limit)s) as page
         where 'queued' = any(%(statuses)s::text[])
         union all
        select job.id, job.job_type
          from jobs as job
         where job.queue_id = any(%(queue_ids)s::uuid[])
           and job.status in ('claimed', 'running')
           and job.status = any(%(statuses)s::text[])
           and job.id > %(after_id)s
           and job.id <= %(until_id)s) as seen
 order by seen.id
 limit %(limit)s;
