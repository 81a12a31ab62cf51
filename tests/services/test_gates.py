"""Explaining what gates keep a queued job from running: they say what the claim does."""

from __future__ import annotations

import pytest
from django.db.models import F
from django.db.models.functions import Now

from jobs.lifecycle.claim import Claim, Want
from jobs.lifecycle.claim_gated import claim_gated
from jobs.models import CircuitBreaker, Job
from jobs.selectors.explain import explain
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import ANY_TYPE, make_job

pytestmark = pytest.mark.django_db


def codes(job: Job) -> list[str]:
    return [
        reason.code for reason in explain(Job.objects.get(pk=job.pk)) if reason.code not in ("no_worker", "in_line")
    ]


def claim(queue: Queue, seats: int = 1) -> None:
    want = Want(str(queue.pk), seats, is_gated=True)
    claim_gated(Claim(str(uuid7()), [want], ANY_TYPE, starts=seats), want)


def test_a_full_key_names_its_holder(queue: Queue) -> None:
    first, second = [make_job(queue, concurrency_key="a") for _ in range(2)]
    assert codes(second) == []
    claim(queue)

    [reason] = [reason for reason in explain(second) if reason.code == "key_at_limit"]

    assert [holder["job_id"] for holder in reason.more["holders"]] == [first.pk]


def test_a_used_up_rate_says_when_it_goes_on(queue: Queue) -> None:
    Queue.objects.filter(pk=queue.pk).update(rate_limit=1, rate_period_secs=100)
    _, second = [make_job(queue) for _ in range(2)]
    assert codes(second) == []
    claim(queue)

    [reason] = [reason for reason in explain(second) if reason.code == "rate_limited"]

    assert 99 < reason.more["in_s"] <= 100


@pytest.mark.parametrize(
    ("state", "allowance", "code"),
    [("open", None, "circuit_open"), ("half_open", 1, "circuit_half_open"), ("closed", 4, "circuit_closing")],
)
def test_a_circuit_that_is_not_trusted_says_so_and_not_for_those_let_through(
    queue: Queue, state: str, allowance: int | None, code: str
) -> None:
    waiting, chosen = [make_job(queue) for _ in range(2)]
    Job.objects.update(circuit="c")
    opened_at = Now() if state == "open" else None
    let_through = [chosen.pk] if allowance else []
    CircuitBreaker.objects.create(
        project_id=queue.project_id, name="c", state=state, allowance=allowance, opened_at=opened_at,
        let_through=let_through,
    )  # fmt: skip

    assert codes(waiting) == [code]
    assert codes(chosen) == ([] if allowance else [code])


def test_a_circuit_of_another_project_keeps_nothing(queue: Queue) -> None:
    job = make_job(queue)
    Job.objects.update(circuit="c")
    CircuitBreaker.objects.create(project_id=uuid7(), name="c", state="open", opened_at=Now())

    assert codes(job) == []
    assert Job.objects.filter(circuit=F("circuit")).exists()


def test_jobs_that_a_claim_walks_past_are_not_ahead(queue: Queue) -> None:
    Queue.objects.filter(pk=queue.pk).update(max_concurrency_per_key=1)
    make_job(queue, concurrency_key="a")
    claim(queue)
    make_job(queue, concurrency_key="a")
    broken = make_job(queue, concurrency_key="b")
    Job.objects.filter(pk=broken.pk).update(circuit="c")
    CircuitBreaker.objects.create(project_id=queue.project_id, name="c", state="open", opened_at=Now())
    late = make_job(queue, concurrency_key="c")
    Job.objects.filter(pk=late.pk).update(deadline=Now())
    job, last = [make_job(queue, concurrency_key=key) for key in ("d", "e")]

    assert "in_line" not in [reason.code for reason in explain(job)]
    assert [reason.more["jobs_ahead"] for reason in explain(last) if reason.code == "in_line"] == [1]
