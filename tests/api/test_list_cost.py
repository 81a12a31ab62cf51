"""What a page of jobs costs the database does not depend on how many jobs there are, whatever the filter."""

from __future__ import annotations

import json

import pytest
from django.db import connection

from jobs import sql
from jobs.states import JobStatus
from scheduler_project.lib.ids import HIGHEST, LOWEST
from tests import distributed
from tests.factories import make_project, make_queue
from tests.sizes import PLAN_ROWS

JOBS = PLAN_ROWS // 2
#: Pages of 8 kB that may be touched for 50 rows of each of three queues.
MOST_BUFFERS = 600
# Most have completed; of the others there are a few, the oldest of all.
FILL = """
insert into jobs
  (id, project_id, queue_id, job_type, payload, priority, status, run_at, completed_at, trace_id, updated_at)
select (lpad(to_hex(1700000000000 + i), 12, '0') || '-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, %(project)s,
       (%(queues)s::uuid[])[1 + i %% 3], 'noop', '{}', 0, status.name, now(),
       case when status.name in ('queued', 'scheduled') then null else now() end, '', now()
  from generate_series(1, %(count)s) as i
 cross join lateral (select case when i > 60 then 'completed'
                                 else (array['queued', 'scheduled', 'failed', 'dead_letter', 'cancelled'])[1 + i %% 5]
                            end as name) as status
"""


@pytest.fixture(scope="module")
def full(django_db_setup, django_db_blocker):
    """Three queues with a long past, rolled back at the end."""
    from django.db import transaction

    with django_db_blocker.unblock(), transaction.atomic():
        project = make_project()
        queues = [make_queue(project).pk for _ in range(3)]
        with connection.cursor() as cursor:
            cursor.execute(FILL, {"project": project.pk, "queues": queues, "count": JOBS})
            cursor.execute("analyze jobs")
        yield queues
        transaction.set_rollback(True)


@distributed.plain_plans
@pytest.mark.parametrize("status", [None, *JobStatus.values])
def test_a_page_touches_a_bounded_number_of_pages(full, django_db_blocker, status):
    place = {"from_id": LOWEST, "below_id": HIGHEST, "rows": 51, "limit": 51, "skip": 0}
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        statement = sql.PAGE_OF_QUEUED if status == "queued" else sql.PAGE_OF_JOBS
        text = cursor.mogrify(statement.text, {"queue_ids": full, "status": status, "few": 5_000, **place})
        cursor.execute(f"explain (analyze, buffers, format json) {text}")
        plan = cursor.fetchone()[0]

    top = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
    assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] < MOST_BUFFERS
    assert "Seq Scan" not in json.dumps(top)
