-- claimed_unknown.sql: leases of a worker that it knows nothing of: the answer to its claim was lost on the way
-- params   worker_id uuid, known uuid[] (tokens in its hands), settled_s float8 (only leases at least so old)
-- returns  id, token, claimed_at
-- locks    none; giving them back is fenced by lease_token
-- index    jobs_in_flight, which is small
select id::text, lease_token::text, locked_at::text
  from jobs
 where status in ('claimed', 'running')
   and locked_by = %(worker_id)s
   and lease_token <> all(%(known)s::uuid[])
   and locked_at < clock_timestamp() - make_interval(secs => %(settled_s)s);
