-- find_key.sql: the API key of a hash, if it may be used now
-- params   key_hash text, noted_s float8 (a use is written down at most this often, in seconds)
-- returns  id, project_id, name, prefix, scope, created_by_id, created_at, expires_at, is_use_noted    no row or one
-- locks    none
-- index    the unique one of api_keys.key_hash
select key.id, key.project_id, key.name, key.prefix, key.scope, key.created_by_id, key.created_at, key.expires_at,
       coalesce(key.last_used_at > statement_timestamp() - make_interval(secs => %(noted_s)s), false)
  from api_keys as key
  join projects as project on project.id = key.project_id
 where key.key_hash = %(key_hash)s
   and key.revoked_at is null
   and (key.expires_at is null or key.expires_at > statement_timestamp())
   and project.deleted_at is null;
