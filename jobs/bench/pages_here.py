"""A program, run in the scratch database: opens every page that reads, as an owner, and says what each costs.

The web process's stack without its socket, so that each statement can be counted. Standard input: {"schedules"}.
Output: by page, milliseconds at the median and the 95th percentile, and statements, as JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402, TID251 - every statement is to be seen
from django.test import Client  # noqa: E402

from accounts.models import User  # noqa: E402
from dlq.grouping import group, open_letters  # noqa: E402
from dlq.models import DeadLetter  # noqa: E402
from jobs.models import Job, ScheduledJob, ScheduleFire  # noqa: E402
from jobs.services.schedules import create_schedule  # noqa: E402
from orgs.models import OrganizationMember, Project, Role  # noqa: E402
from queues.models import Queue  # noqa: E402
from scheduler_project.lib.garbage import spare_what_stays  # noqa: E402
from scheduler_project.lib.sql import database_now  # noqa: E402

WARM_UP, ROUNDS = 3, 40
DUE_TIMES, HOUR = 30, timedelta(hours=1)
#: One minute of the year, far from now: what is planned is not to run meanwhile.
EXPRESSION = "0 3 29 2 *"


def main() -> int:
    """Open the pages, and write what they cost."""
    asked = json.load(sys.stdin)
    project = Project.objects.select_related("organization").get()
    queue = Queue.objects.order_by("name")[0]
    made = [
        create_schedule(queue, name=f"schedule {number}", cron_expression=EXPRESSION, job_type="noop")
        for number in range(asked["schedules"])
    ]
    _give_past(made)
    owner = User.objects.create_user("owner@example.com")
    OrganizationMember.objects.create(organization=project.organization, user=owner, role=Role.OWNER)
    client = Client(headers={"host": "localhost"})
    client.force_login(owner)
    spare_what_stays()  # as the web process does (gunicorn.py)
    home = f"/p/{project.organization.slug}/{project.slug}/"
    json.dump({name: _cost(client, home + path) for name, path in _paths(queue).items()}, sys.stdout)
    return 0


def _give_past(schedules: list[ScheduledJob]) -> None:
    """So many due times of each, with their jobs: a list shows the last twenty."""
    now = database_now()
    jobs = iter(Job.objects.values_list("pk", flat=True)[: len(schedules) * DUE_TIMES])
    fired = ScheduleFire.Outcome.FIRED
    fires = [
        ScheduleFire(
            project_id=one.project_id, scheduled_job=one, outcome=fired, job_id=job_id, due_at=now - ago * HOUR
        )
        for one in schedules
        for ago, job_id in zip(range(1, DUE_TIMES + 1), jobs, strict=False)
    ]
    ScheduleFire.objects.bulk_create(fires, batch_size=2_000)


def _paths(queue: Queue) -> dict[str, str]:
    job, waiting = Job.objects.filter(status="completed")[0], Job.objects.filter(status="queued")[0]
    letter = DeadLetter.objects.all()[0]
    return {
        "dashboard": "",
        "dashboard-day": "?range=24h",
        "queues": "queues",
        "queue": f"queues/{queue.pk}",
        "queue-day": f"queues/{queue.pk}?range=24h",
        "jobs": "jobs",
        "jobs-of-status": "jobs?status=dead_letter",
        "jobs-queued": "jobs?status=queued",
        "jobs-any-time": "jobs?window=all",
        "jobs-of-queue": f"jobs?queue={queue.pk}",
        "jobs-of-type": f"jobs?queue={queue.pk}&type=type-3",
        "jobs-of-error": "jobs?error=no+customer",
        "job": f"jobs/{job.pk}",
        "job-that-waits": f"jobs/{waiting.pk}",
        "job-new": "jobs/new",
        "dead-letters": "dead-letter",
        "dead-letter-list": "dead-letter?view=list",
        "dead-letters-of-cause": f"dead-letter?group={group(open_letters(letter.project_id)).groups[0].kind.key}",
        "dead-letter": f"dead-letter/{letter.pk}",
        "schedules": "scheduled-jobs",
        "schedule": f"scheduled-jobs/{queue.scheduled_jobs.all()[0].pk}",
        "schedule-new": "scheduled-jobs/new",
        "jump": "jump?q=queue",
        "workers": "workers",
        "workflows": "workflows",
        "batches": "batches",
        "operations": "operations",
        "retry-policies": "retry-policies",
        "circuit-breakers": "circuit-breakers",
        "proofs": "proofs",
        "audit-log": "audit-log",
        "settings": "settings",
        "alerts": "settings/alerts",
        "event-webhooks": "settings/event-webhooks",
        "egress": "settings/egress",
        "members": "settings/members",
        "api-keys": "settings/api-keys",
        "webhook-secrets": "settings/webhook-secrets",
    }


def _cost(client: Client, path: str) -> dict[str, float]:
    statements = 0

    def _count(execute: Callable[..., Any], statement: Any, params: Any, many: bool, context: Any) -> Any:
        nonlocal statements
        statements += 1
        return execute(statement, params, many, context)

    def opened() -> float:
        began = time.perf_counter()
        answer = client.get(path)
        if answer.status_code != 200:
            raise RuntimeError(f"GET {path}: {answer.status_code}")
        return (time.perf_counter() - began) * 1000

    for _ in range(WARM_UP):
        opened()
    with connection.execute_wrapper(_count):
        opened()
    times = [opened() for _ in range(ROUNDS)]
    return {"p50": statistics.median(times), "p95": statistics.quantiles(times, n=20)[-1], "queries": statements}


if __name__ == "__main__":
    sys.exit(main())
