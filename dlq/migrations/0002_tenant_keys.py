"""Keys that carry the tenant, and a foreign key that can not leave the project (ADR 0006)."""

from django.db import migrations

FORWARD = """
alter table dead_letter_queue drop constraint dead_letter_queue_pkey, add primary key (id, project_id);
alter table dead_letter_queue add constraint dead_letters_queue_in_project
  foreign key (queue_id, project_id) references queues (id, project_id);
"""
BACK = """
alter table dead_letter_queue drop constraint dead_letters_queue_in_project;
alter table dead_letter_queue drop constraint dead_letter_queue_pkey, add primary key (id);
"""


class Migration(migrations.Migration):
    dependencies = [("dlq", "0001_initial"), ("queues", "0002_tenant_keys")]
    operations = [migrations.RunSQL(FORWARD, BACK)]
