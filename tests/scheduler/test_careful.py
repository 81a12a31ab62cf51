"""Careful batches: a row the database refuses is set aside, reported, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now

from jobs.lifecycle.promote import due_ids, promote_due
from jobs.lifecycle.reap import expired_ids, reap_expired
from jobs.models import Job
from jobs.scheduler.duties import base, promote
from jobs.scheduler.duties.base import ROUND_S, SET_ASIDE_S, Careful
from queues.models import Queue
from tests.factories import claim_from, lapse, make_job, make_jobs, reload

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def refusing(committed_queue: Queue) -> Iterator[None]:
    """The database refuses to queue, or to reschedule, a job whose trace says bad."""
    with connection.cursor() as cursor:
        cursor.execute(
            "alter table jobs add constraint test_refuses check (not (trace_id = 'bad'"
            " and (status = 'queued' and fencing_number = 0 or status = 'scheduled' and fencing_number > 0)))"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("alter table jobs drop constraint test_refuses")


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Move the clock of set-aside rows."""
    now = [1_000.0]
    monkeypatch.setattr("jobs.scheduler.duties.base.time.monotonic", lambda: now[0])

    def move(seconds: float) -> None:
        now[0] += seconds

    return move


def scheduled(queue: Queue, traces: list[str]) -> list[Job]:
    """Jobs that are due, the first the longest."""
    jobs = [make_job(queue, delay_s=3_600, trace_id=trace) for trace in traces]
    for number, job in enumerate(jobs):
        Job.objects.filter(pk=job.pk).update(run_at=Now() - timedelta(minutes=60 - number))
    return jobs


def statuses(jobs: list[Job]) -> list[str]:
    return [reload(job).status for job in jobs]


def careful_promotion(limit: int = 500) -> Careful:
    return Careful("promote", promote_due, due_ids, limit=limit)


def test_all_there_is_is_handled_batch_by_batch(committed_queue: Queue) -> None:
    scheduled(committed_queue, [""] * 7)

    assert careful_promotion(limit=3).run() == (7, False)


def test_one_refused_row_does_not_keep_the_others(
    committed_queue: Queue, refusing: None, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = scheduled(committed_queue, ["", "bad", "", ""])

    assert careful_promotion().run() == (3, False)

    assert statuses(jobs) == ["queued", "scheduled", "queued", "queued"]
    assert "row_set_aside" in caplog.text
    assert str(jobs[1].pk) in caplog.text


def test_a_row_set_aside_is_left_alone_for_a_while_and_then_tried_again(
    committed_queue: Queue, refusing: None, pass_time: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    [bad] = scheduled(committed_queue, ["bad"])
    careful = careful_promotion()
    careful.run()
    caplog.clear()

    pass_time(SET_ASIDE_S - 1)
    assert careful.run() == (0, False)
    assert "refused" not in caplog.text
    Job.objects.filter(pk=bad.pk).update(trace_id="mended")
    pass_time(2)

    assert careful.run() == (1, False)
    assert statuses([bad]) == ["queued"]


@pytest.mark.parametrize("bad", [3, 4, 5, 9])
def test_more_refused_rows_than_a_batch_holds_do_not_starve_the_good_ones(
    committed_queue: Queue, refusing: None, bad: int
) -> None:
    jobs = scheduled(committed_queue, ["bad"] * bad + [""] * 4)
    careful = careful_promotion(limit=3)

    for _ in range(bad + 2):
        careful.run()

    assert statuses(jobs) == ["scheduled"] * bad + ["queued"] * 4


def test_refused_rows_do_not_keep_expired_leases_from_being_reaped(committed_queue: Queue, refusing: None) -> None:
    make_jobs(committed_queue, 4)
    leases = claim_from(committed_queue, 4)
    for lease in leases:
        lapse(lease)
    Job.objects.filter(pk=leases[1].job_id).update(trace_id="bad")

    assert Careful("reap", reap_expired, expired_ids).run() == (3, False)

    assert [reload(lease.job_id).status for lease in leases] == ["scheduled", "running", "scheduled", "scheduled"]


def test_a_round_ends_in_its_time_and_says_that_there_is_more(pass_time: Callable[[float], None]) -> None:
    limits = []

    def always_full(*, limit: int, **_: object) -> int:
        limits.append(limit)
        pass_time(ROUND_S / 3)
        return limit

    handled, has_more = Careful("promote", always_full, due_ids, limit=5).run()

    assert has_more
    assert handled == sum(limits)
    assert 3 <= len(limits) <= 4


def test_an_outage_is_no_bad_row(committed_queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**_: object) -> int:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(base, "session", lambda: None)

    with pytest.raises(OperationalError):
        Careful("promote", away, due_ids).run()


def test_the_duty_asks_no_more_often_than_it_must_while_only_refused_rows_are_due(
    committed_queue: Queue, refusing: None
) -> None:
    scheduled(committed_queue, ["bad"])

    assert promote.duty(2.0).run() == 2.0
