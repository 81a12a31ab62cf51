-- keep_depths.sql: keep the counts of a walk over the queues as their depths of this minute, and what they add up to
-- params   none
-- returns  nothing
-- locks    the rows of queue_depths it writes
-- index    primary keys. A project that has this minute is left out; a queue in which nothing is gets no row
with this as (
    select date_trunc('minute', statement_timestamp()) as minute
), counted as materialized (
    select stat.project_id, stat.queue_id, stat.ready, stat.scheduled, stat.claimed + stat.running as in_flight,
           stat.dead_letters
      from queue_stats as stat
      join queues as queue on queue.id = stat.queue_id and queue.project_id = stat.project_id
     cross join this
     where queue.deleted_at is null
       and stat.as_of > statement_timestamp() - interval '5 minutes'
       and not exists (select from queue_depths as kept
                        where kept.project_id = stat.project_id
                          and kept.queue_id = '00000000-0000-0000-0000-000000000000'
                          and kept.at = this.minute)
)
insert into queue_depths (project_id, queue_id, at, ready, scheduled, in_flight, dead_letters)
select project_id, queue_id, this.minute, ready, scheduled, in_flight, dead_letters
  from counted, this
 where ready + scheduled + in_flight + dead_letters > 0
 union all
select project_id, '00000000-0000-0000-0000-000000000000', this.minute, sum(ready), sum(scheduled), sum(in_flight),
       sum(dead_letters)
  from counted, this
 group by project_id, this.minute
    on conflict do nothing;
