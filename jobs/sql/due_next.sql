-- due_next.sql: how long until the next scheduled job is due
-- params   just_s float8
-- returns  seconds    one row; negative for a job that was due up to just_s ago; null when none is scheduled, or only
--          such that were due before: whoever promotes has taken those, but for the ones that can not be taken now, and
--          these must not hide the next
-- locks    none
-- index    jobs_due, one entry
select extract(epoch from (select run_at
                             from jobs
                            where status = 'scheduled'
                              and not is_blocked
                              and run_at > statement_timestamp() - make_interval(secs => %(just_s)s)
                            order by run_at, id
                            limit 1) - clock_timestamp())::float8;
