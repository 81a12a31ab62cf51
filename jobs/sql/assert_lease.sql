-- assert_lease.sql: refuse to go on without the lease; for the transaction of a handler, as its last statement
-- params   job_id uuid, lease_token uuid
-- returns  one row without meaning; raises the error lease_lost (SQLSTATE PL001) if the token is not the row's
-- locks    the job until commit, so that the lease can not change hands meanwhile
-- index    primary key of jobs
select assert_lease(%(job_id)s::uuid, %(lease_token)s::uuid);
