-- same_work.sql: which of the jobs that repeated submissions met are the very same work
-- params   arrays of one length: ids, job_types, payloads (of the submissions)
-- returns  id
-- locks    none
-- index    primary key of jobs
select job.id::text
  from unnest(%(ids)s::uuid[], %(job_types)s::text[], %(payloads)s::text[]) as given(id, job_type, payload)
  join jobs as job on job.id = given.id
 where job.job_type = given.job_type
   and job.payload = given.payload::jsonb;
