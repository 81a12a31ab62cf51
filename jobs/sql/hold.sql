-- hold.sql: lock the jobs that the next statements of this transaction change one kind after the other
-- params   ids uuid[]
-- returns  nothing of use
-- locks    the rows until commit, in the order of their ids, as everybody does: no deadlocks
-- index    primary key of jobs
select 1
  from jobs
 where id = any(%(ids)s::uuid[])
 order by id
   for no key update;
