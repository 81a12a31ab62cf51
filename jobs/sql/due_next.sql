-- due_next.sql: how long until the next scheduled job is due
-- params   none
-- returns  seconds    one row; null when none is scheduled, negative when one is late
-- locks    none
-- index    jobs_due, its first entry
select extract(epoch from (select run_at
                             from jobs
                            where status = 'scheduled'
                              and not is_blocked
                            order by run_at, id
                            limit 1) - clock_timestamp())::float8;
