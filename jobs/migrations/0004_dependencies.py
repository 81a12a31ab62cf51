"""What a parent's failure does to its children, and the function that lets children go (ADR 12)."""

from django.db import migrations, models

# clock_timestamp, not statement_timestamp: a child may have been submitted while the call waited for its parent.
# Two statements for each round, since a statement sees what was committed before it began: the first waits for the
# locks, the second judges. Children that are cancelled are the ended parents of the next round.
FUNCTION = """
create function release_dependants(parents uuid[]) returns setof uuid language plpgsql as $body$
declare
  ended uuid[] := array(select id from jobs where id = any(parents) and has_dependants
                           and status in ('completed', 'failed', 'dead_letter', 'cancelled'));
  freed uuid[];
begin
  while cardinality(ended) > 0 loop
    perform 1
       from jobs as child
      where child.id in (select edge.job_id from job_dependencies as edge where edge.depends_on_job_id = any(ended))
        and child.is_blocked
        and child.status = 'scheduled'
      order by child.id
        for no key update;

    with touched as materialized (
        select child.id,
               bool_or(edge.on_failure = 'cancel' and parent.status in ('failed', 'dead_letter', 'cancelled')) as is_doomed,
               bool_and(parent.status = 'completed' or (edge.on_failure = 'run'
                        and parent.status in ('failed', 'dead_letter', 'cancelled'))) as is_free,
               min(parent.id::text) filter (where edge.on_failure = 'cancel'
                        and parent.status in ('failed', 'dead_letter', 'cancelled')) as culprit
          from jobs as child
          join job_dependencies as edge on edge.job_id = child.id
          join jobs as parent on parent.id = edge.depends_on_job_id
         where child.id in (select e.job_id from job_dependencies as e where e.depends_on_job_id = any(ended))
           and child.is_blocked
           and child.status = 'scheduled'
         group by child.id
    ), moved as (
        update jobs as child
           set status = case when touched.is_doomed then 'cancelled'
                             when child.run_at <= clock_timestamp() then 'queued'
                             else 'scheduled' end,
               is_blocked = false,
               completed_at = case when touched.is_doomed then statement_timestamp() end,
               error_message = case when touched.is_doomed
                                    then 'Cancelled: it depends on job ' || touched.culprit || ', which did not complete.'
                                    else child.error_message end,
               updated_at = statement_timestamp()
          from touched
         where child.id = touched.id
           and (touched.is_doomed or touched.is_free)
        returning child.id, child.queue_id, child.status, child.has_dependants
    )
    select coalesce(array_agg(id) filter (where status = 'cancelled' and has_dependants), '{}'),
           coalesce(array_agg(queue_id) filter (where status = 'queued'), '{}')
      into ended, freed
      from moved;
    return query select unnest(freed);
  end loop;
end
$body$;
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0003_schedule_policies")]
    operations = [
        migrations.AddField(
            model_name="jobdependency",
            name="on_failure",
            field=models.CharField(
                choices=[("cancel", "Cancel it"), ("run", "Run it anyway"), ("wait", "Let it wait for a retry")],
                default="cancel",
                max_length=6,
            ),
        ),
        migrations.AddConstraint(
            model_name="jobdependency",
            constraint=models.CheckConstraint(
                condition=models.Q(("on_failure__in", ["cancel", "run", "wait"])), name="job_dependencies_on_failure"
            ),
        ),
        migrations.RunSQL(FUNCTION, "drop function release_dependants(uuid[])"),
    ]
