"""Hints: who is woken by what, after the commit, once for a topic and moment, and never at the cost of a write."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from django.db import OperationalError, transaction
from pytest_django import Settings

from jobs import hints
from jobs.decisions import Failed, Succeeded
from jobs.hints import CHANNEL, hint
from jobs.lifecycle.cancel import cancel_job
from jobs.lifecycle.promote import promote_due
from jobs.lifecycle.requeue import requeue_job
from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib import pg
from tests.factories import claim_one, end, make_due, make_job, make_jobs, make_queue

pytestmark = pytest.mark.django_db(transaction=True)

Heard = Callable[[], list[str]]


@pytest.fixture
def heard(transactional_db: None) -> Iterator[Heard]:
    """What was sent since the last call, in order."""
    hints._debounce = hints._Debounce()
    with psycopg.connect(**pg.direct_parameters(), autocommit=True) as listener:
        listener.execute(f"listen {CHANNEL}")

        def take() -> list[str]:
            # What was sent before this query is delivered with its answer.
            listener.execute("select 1")
            return [note.payload for note in listener.notifies(timeout=0)]

        yield take


def forget() -> None:
    """As if the quiet time since the last hints were over."""
    hints._debounce = hints._Debounce()


def test_a_queued_job_wakes_whoever_serves_its_queue(committed_queue: Queue, heard: Heard) -> None:
    make_job(committed_queue)

    assert heard() == [f"work {committed_queue.pk}"]


def test_a_job_due_soon_wakes_the_scheduler_and_one_due_later_nobody(committed_queue: Queue, heard: Heard) -> None:
    make_job(committed_queue, delay_s=3_600)
    assert heard() == []

    make_job(committed_queue, delay_s=0.5)
    assert heard() == ["due"]


def test_a_thousand_jobs_are_one_hint(committed_queue: Queue, heard: Heard) -> None:
    make_jobs(committed_queue, 1_000)

    assert heard() == [f"work {committed_queue.pk}"]


def test_nothing_is_sent_before_the_commit(committed_queue: Queue, heard: Heard) -> None:
    with transaction.atomic():
        make_job(committed_queue)
        assert heard() == []

    assert heard() == [f"work {committed_queue.pk}"]


def test_what_is_rolled_back_wakes_nobody(committed_queue: Queue, heard: Heard) -> None:
    with transaction.atomic():
        make_job(committed_queue)
        transaction.set_rollback(True)

    assert heard() == []


def test_a_running_job_that_is_cancelled_wakes_its_worker_and_a_waiting_one_nobody(
    committed_queue: Queue, heard: Heard
) -> None:
    running, waiting = make_job(committed_queue), make_job(committed_queue)
    claim_one(committed_queue)
    heard()

    cancel_job(running.pk, reason="stop")
    cancel_job(waiting.pk, reason="stop")

    assert heard() == [f"cancel {running.pk}"]


def test_a_retry_wakes_the_scheduler_and_its_promotion_a_worker(committed_queue: Queue, heard: Heard) -> None:
    job = make_job(committed_queue)
    heard()

    end(claim_one(committed_queue), Failed("boom"))
    assert heard() == ["due"]

    forget()
    make_due(job)
    assert heard() == [f"work {committed_queue.pk}"]


def test_a_job_that_completes_wakes_nobody(committed_queue: Queue, heard: Heard) -> None:
    make_job(committed_queue)
    heard()
    forget()

    end(claim_one(committed_queue), Succeeded())

    assert heard() == []


def test_a_requeued_job_wakes_a_worker(committed_queue: Queue, heard: Heard) -> None:
    job = make_job(committed_queue)
    end(claim_one(committed_queue), Succeeded())
    heard()
    forget()

    requeue_job(job.pk, by=None)

    assert heard() == [f"work {committed_queue.pk}"]


def test_a_sweep_wakes_each_queue_once(committed_queue: Queue, heard: Heard) -> None:
    other = make_queue(committed_queue.project)
    for queue in (committed_queue, other):
        make_jobs(queue, 5, delay_s=3_600)
    Job.objects.update(run_at=Job.objects.earliest("created_at").created_at)
    heard()

    promote_due(limit=100)

    assert sorted(heard()) == sorted([f"work {committed_queue.pk}", f"work {other.pk}"])


def test_a_topic_is_sent_once_in_its_quiet_time_and_again_after_it(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    monkeypatch.setattr("jobs.hints.time.monotonic", lambda: now[0])
    for _ in range(5):
        hint("work", "q1")
    hint("work", "q2")
    assert heard() == ["work q1", "work q2"]

    now[0] += hints.QUIET_S * 1.1

    hint("work", "q1")
    assert heard() == ["work q1"]


def test_topics_that_have_been_quiet_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("jobs.hints.time.monotonic", lambda: now[0])
    debounce = hints._Debounce()
    for number in range(5_000):
        now[0] += 0.001
        debounce.allows(f"work {number}")

    assert len(debounce._sent) < 1_200


def test_where_nobody_may_listen_nothing_is_sent(committed_queue: Queue, heard: Heard, settings: Settings) -> None:
    settings.LISTEN = False

    make_job(committed_queue)

    assert heard() == []


def test_a_hint_that_can_not_be_sent_costs_nothing_but_itself(
    committed_queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(hints, "run", away)

    job = make_job(committed_queue)

    assert Job.objects.filter(pk=job.pk).exists()
    assert "hint_not_sent" in caplog.text
