"""Whatever can be typed into the search box is answered by indexes, on a table with a past."""

from __future__ import annotations

import json
import re

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from jobs.selectors.job_lists import page_of_jobs
from jobs.web.job_filter import Chosen
from queues.models import Queue
from scheduler_project.lib.sql import database_now
from tests import distributed
from tests.api.test_list_cost import FILL, JOBS
from tests.factories import make_project, make_queue

pytestmark = [pytest.mark.django_db, distributed.plain_plans]

#: An attempt for each job; one in a thousand attempts has failed.
ATTEMPTS = """
insert into job_executions
  (id, project_id, job_id, attempt_number, fencing_number, status, claimed_at, finished_at, error_message, created_at)
select id, project_id, id, 1, 1, case when n % 1000 = 0 then 'failed' else 'completed' end, now(), now(),
       'time out', now()
  from (select id, project_id, row_number() over (order by id) as n from jobs) as job
"""
#: Pages of 8 kB that the database may touch for one page of jobs: all jobs and attempts are some 2,000.
MOST_BUFFERS = 700


@pytest.fixture(scope="module")
def full(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), transaction.atomic():
        project = make_project()
        queues = [make_queue(project, name=name) for name in ("mail", "sms", "web")]
        with connection.cursor() as cursor:
            cursor.execute(FILL, {"project": project.pk, "queues": [queue.pk for queue in queues], "count": JOBS})
            cursor.execute(ATTEMPTS)
            cursor.execute("analyze jobs, job_executions")
        yield queues
        transaction.set_rollback(True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "queue:mail",
        "status:completed",
        "queue:mail status:dead_letter",
        "id:018b",
        "id:018bcfe5 status:completed",
        'error:"time out"',
        'error:"time out" queue:mail status:completed type:noop',
        "error:nothing-like-that",
    ],
)
def test_no_search_reads_a_table(full: list[Queue], django_db_blocker, text):
    with django_db_blocker.unblock(), CaptureQueriesContext(connection) as queries:
        chosen = Chosen.searched(f"{text} window:all", {queue.pk: queue.name for queue in full})
        wanted = chosen.filter_in([queue.pk for queue in full], full[0].project_id, database_now())
        assert wanted is not None
        page_of_jobs(wanted, cursor=None, rows=slice(0, 51))
    asked = [one["sql"] for one in queries if re.search(r'from "?job', one["sql"], re.IGNORECASE)]
    assert asked

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        for statement in asked:
            cursor.execute(f"explain (analyze, buffers, format json) {statement}")
            plan = cursor.fetchone()[0]
            top = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
            assert not set(read_whole(top)) & {"jobs", "job_executions"}, statement
            assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] < MOST_BUFFERS, statement


def read_whole(node) -> list[str]:
    """The tables that a plan reads from end to end."""
    own = [node["Relation Name"]] if node["Node Type"] == "Seq Scan" else []
    return own + [name for child in node.get("Plans", ()) for name in read_whole(child)]
