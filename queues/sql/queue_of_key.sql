-- queue_of_key.sql: the queue that the holder of a key submits to, by its id or by the end of its path
-- params   project_id uuid (the key's); queue_id uuid or null; name, project, organization text, null where not said
-- returns  id, project_id, name, has_keys, deleted_at    no row or one
-- locks    none
-- index    the primary one of queues, or that of a project's names
select queue.id, queue.project_id, queue.name, queue.has_keys, queue.deleted_at
  from queues as queue
  join projects as project on project.id = queue.project_id
  join organizations as organization on organization.id = project.organization_id
 where queue.project_id = %(project_id)s
   and queue.deleted_at is null
   and project.deleted_at is null
   and (%(queue_id)s::uuid is null or queue.id = %(queue_id)s::uuid)
   and (%(name)s::text is null or queue.name = %(name)s::text)
   and (%(project)s::text is null or project.slug = %(project)s::text)
   and (%(organization)s::text is null or organization.slug = %(organization)s::text);
