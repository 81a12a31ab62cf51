-- statuses.sql: the status of each of many jobs of a project that is still kept
-- params   project_id uuid, ids uuid[]
-- returns  id, status
-- locks    none
-- index    primary key of jobs
select id::text, status
  from jobs
 where id = any(%(ids)s::uuid[])
   and project_id = %(project_id)s;
