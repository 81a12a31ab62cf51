import django.contrib.postgres.fields
import django.db.models.functions.datetime
from django.db import migrations, models

import scheduler_project.lib.ids

# The tenant rule: the project is in every key. And the storage of a table that is written often.
BREAKERS = """
alter table circuit_breakers drop constraint circuit_breakers_pkey, add primary key (id, project_id);
alter table circuit_breakers
  set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0009_reviewed'),
        ('orgs', '0003_work_scope'),
        ('queues', '0003_key_limits'),
    ]

    operations = [
        # Nothing was ever written into the old table: it is made anew.
        migrations.DeleteModel(name='CircuitBreaker'),
        migrations.CreateModel(
            name='CircuitBreaker',
            fields=[
                ('id', models.UUIDField(default=scheduler_project.lib.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('project_id', models.UUIDField()),
                ('name', models.CharField(max_length=300)),
                ('state', models.CharField(choices=[('closed', 'Closed'), ('open', 'Open'), ('half_open', 'Half open')], db_default='closed', default='closed', max_length=10)),
                ('recent', models.CharField(db_default='', default='', max_length=20)),
                ('opened_at', models.DateTimeField(null=True)),
                ('allowance', models.PositiveIntegerField(null=True)),
                ('let_through', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), db_default=models.Value('{}'), default=list, size=None)),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'db_table': 'circuit_breakers',
                'indexes': [models.Index(condition=models.Q(('state__in', ['open', 'half_open']), ('allowance__isnull', False), _connector='OR'), fields=['project_id'], name='circuit_breakers_not_trusted')],
                'constraints': [
                    models.UniqueConstraint(fields=('project_id', 'name'), name='circuit_breakers_name_in_project'),
                    models.CheckConstraint(condition=models.Q(('state__in', ['closed', 'open', 'half_open'])), name='circuit_breakers_state'),
                    models.CheckConstraint(condition=models.Q(models.Q(('state', 'half_open'), _negated=True), ('allowance', 1), _connector='OR'), name='circuit_breakers_one_probe'),
                ],
            },
        ),
        migrations.RunSQL(BREAKERS, migrations.RunSQL.noop),
        migrations.AddField(
            model_name='job',
            name='circuit',
            field=models.CharField(max_length=300, null=True),
        ),
        migrations.AddField(
            model_name='job',
            name='concurrency_key',
            field=models.CharField(max_length=255, null=True),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('concurrency_key__isnull', False), ('status__in', ['claimed', 'running'])), fields=['queue', 'concurrency_key'], name='jobs_keyed_in_flight'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('circuit__isnull', False), ('status', 'queued')), fields=['project', 'circuit', 'id'], name='jobs_of_circuit'),
        ),
    ]
