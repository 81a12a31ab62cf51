"""Keys that carry the tenant: (id, project_id), and foreign keys that can not leave the project (ADR 0006)."""

from django.db import migrations

FORWARD = """
alter table retry_policies drop constraint retry_policies_pkey, add primary key (id, project_id);
alter table queues drop constraint queues_pkey, add primary key (id, project_id);
alter table queues add constraint queues_default_retry_policy_in_project
  foreign key (default_retry_policy_id, project_id) references retry_policies (id, project_id);
"""
BACK = """
alter table queues drop constraint queues_default_retry_policy_in_project;
alter table queues drop constraint queues_pkey, add primary key (id);
alter table retry_policies drop constraint retry_policies_pkey, add primary key (id);
"""


class Migration(migrations.Migration):
    dependencies = [("queues", "0001_initial")]
    operations = [migrations.RunSQL(FORWARD, BACK)]
