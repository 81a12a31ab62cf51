-- delete_retry_policy.sql: remove a policy that nothing uses
-- params   policy_id uuid, project_id uuid
-- returns  id    none if it is gone already; the name of the violated foreign key tells who still uses it
-- locks    the row until commit
-- index    primary key of retry_policies. Not through the ORM, which would first read every job of the policy.
delete from retry_policies
 where id = %(policy_id)s
   and project_id = %(project_id)s
returning id::text;
