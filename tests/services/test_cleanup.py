"""system.cleanup archives what is past the retention of its own project, and never anything else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F

from jobs.decisions import Succeeded
from jobs.handlers.base import JobContext, Permanent, Stopped
from jobs.handlers.cleanup import cleanup
from jobs.lease import Ending, Lease
from jobs.lifecycle.settle import settle
from jobs.models import Job
from jobs.worker.outbox import Outbox
from orgs.models import Project
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, claim_one, make_job, make_jobs, make_queue
from tests.worker_parts import context_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def old_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of these tests have the ids of a hundred days ago: retention looks no further than the ids of its day."""
    past = timedelta(days=100) // timedelta(milliseconds=1) << 80
    monkeypatch.setattr("jobs.lifecycle.submit.uuid7s", lambda n: [UUID(int=uuid7().int - past) for _ in range(n)])


def ended(queue: Queue, count: int, days: int) -> None:
    """Jobs that ended so many days ago."""
    made = make_jobs(queue, count)
    settle([Ending.of(lease, Succeeded(), lease.job_id, 1.0) for lease in claim_from(queue, 10_000)])
    past = {name: F(name) - timedelta(days=days) for name in ("created_at", "run_at", "updated_at", "completed_at")}
    Job.objects.filter(pk__in=[job.id for job in made]).update(**past)


def lease_in(queue: Queue, payload: Any = None) -> Lease:
    make_job(queue, "system.cleanup", payload={} if payload is None else payload)
    return claim_one(queue)


def clean(queue: Queue, payload: Any = None) -> dict[str, int]:
    return cleanup(context_of(lease_in(queue, payload)))


def left(queue: Queue) -> int:
    return Job.objects.filter(queue=queue, status="completed").count()


def test_only_the_own_project_is_cleaned(queue: Queue) -> None:
    other = make_queue()
    sibling = make_queue(make_queue(queue.project).project)
    for each in (queue, other, sibling):
        ended(each, 3, 31)
        ended(each, 2, 29)

    assert clean(queue) == {"archived": 6, "steps": 2, "kept_days": 30}

    assert (left(queue), left(sibling), left(other)) == (2, 2, 5)


def test_the_projects_own_retention_counts_and_another_projects_does_not(queue: Queue) -> None:
    other = make_queue()
    Project.objects.filter(pk=queue.project_id).update(retention_days=60)
    Project.objects.filter(pk=other.project_id).update(retention_days=1)
    for each in (queue, other):
        ended(each, 2, 61)
        ended(each, 3, 59)
    result = clean(queue)
    assert (result["archived"], result["kept_days"], left(queue), left(other)) == (2, 60, 3, 5)


@pytest.mark.parametrize(("days", "kept_days", "archived"), [(1, 30, 4), (30, 30, 4), (50, 50, 2), (3_650, 3_650, 0)])
def test_payload_can_keep_longer_and_never_shorter(queue: Queue, days: int, kept_days: int, archived: int) -> None:
    ended(queue, 2, 51)
    ended(queue, 2, 49)
    ended(queue, 2, 29)
    result = clean(queue, {"older_than_days": days})
    assert (result["kept_days"], result["archived"], left(queue)) == (kept_days, archived, 6 - archived)


@pytest.mark.parametrize(
    ("payload", "field"),
    [([], "payload:"), ({"older_than_days": 0}, "older_than_days"), ({"older_than_days": True}, "older_than_days"),
     ({"older_than_days": 3_651}, "older_than_days"), ({"older_than_days": "9"}, "older_than_days"),
     ({"project_id": "x"}, "payload.project_id")],
)  # fmt: skip
def test_bad_payload_is_refused_for_good(queue: Queue, payload: Any, field: str) -> None:
    with pytest.raises(Permanent, match=f"bad_payload: .*{field}"):
        clean(queue, payload)


def test_it_goes_in_steps_with_progress_and_stops_between_them(queue: Queue) -> None:
    ended(queue, 1_100, 31)
    outbox = Outbox()
    ctx = context_of(lease_in(queue), outbox=outbox)
    step = ctx.clean_up

    class Once(JobContext):
        """Asked to stop after its first step."""

        __slots__ = ()

        def clean_up(self, **options: Any) -> Any:
            found = step(**options)
            self.stop("cancelled")
            return found

    ctx.__class__ = Once
    with pytest.raises(Stopped, match="cancelled"):
        cleanup(ctx)
    assert left(queue) == 600
    [progress] = outbox.empty()[1]
    assert progress.note == "500 jobs archived"

    result = clean(queue)
    assert (result["archived"], left(queue)) == (600, 0)


def test_ghost_moves_nothing(queue: Queue) -> None:
    ended(queue, 2, 31)
    lease = lease_in(queue)
    ctx = context_of(lease)
    Job.objects.filter(pk=lease.job_id).update(lease_token=uuid7())
    with pytest.raises(Stopped, match="lost"):
        cleanup(ctx)
    assert left(queue) == 2
