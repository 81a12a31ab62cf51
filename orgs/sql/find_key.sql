-- find_key.sql: the API key of a hash, if it may be used now: whom a request speaks for, and no more, since each request of a machine asks
-- params   key_hash text, noted_s float8 (a use is written down at most this often, in seconds)
-- returns  id, project_id, scope, is_use_noted    no row or one
-- locks    none
-- index    the unique one of api_keys.key_hash
select key.id, key.project_id, key.scope,
       coalesce(key.last_used_at > statement_timestamp() - make_interval(secs => %(noted_s)s), false)
  from api_keys as key
 where key.key_hash = %(key_hash)s
   and key.revoked_at is null
   and (key.expires_at is null or key.expires_at > statement_timestamp())
   and (select project.deleted_at is null from projects as project where project.id = key.project_id);
