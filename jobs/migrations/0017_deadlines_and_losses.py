"""Deadlines, losses of a job's process, and the function by which a transaction refuses to go on without its lease."""

from django.db import migrations, models

# The lock keeps the lease from changing hands until the caller's commit. PL001 is no SQLSTATE of PostgreSQL's own.
ASSERT_LEASE = """
create function assert_lease(job_id uuid, lease_token uuid) returns void language plpgsql as $body$
begin
  perform 1
     from jobs
    where jobs.id = assert_lease.job_id
      and jobs.lease_token = assert_lease.lease_token
      for no key update;
  if not found then
    raise exception 'lease_lost: job % is not held under this lease any more', assert_lease.job_id
      using errcode = 'PL001', hint = 'Another attempt may have begun. Roll back: this one must not write.';
  end if;
end
$body$
"""


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0016_proof_results'),
        ('orgs', '0005_webhook_secrets'),
        ('queues', '0003_key_limits'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='deadline',
            field=models.DateTimeField(help_text='No attempt begins after it.', null=True),
        ),
        migrations.AddField(
            model_name='job',
            name='lost_count',
            field=models.PositiveSmallIntegerField(db_default=0, help_text='Of the attempts used, those whose process died.'),
        ),
        migrations.AddField(
            model_name='job',
            name='start_deadline',
            field=models.DateTimeField(help_text='Not begun by then, it is cancelled.', null=True),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('attempt_count', 0), ('start_deadline__isnull', False), ('status__in', ['scheduled', 'queued'])), fields=['start_deadline'], name='jobs_to_begin_by'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('deadline__isnull', False), ('status__in', ['scheduled', 'queued'])), fields=['deadline'], name='jobs_to_end_by'),
        ),
        migrations.RunSQL(ASSERT_LEASE, "drop function assert_lease(uuid, uuid)"),
    ]
