"""Transactional handlers: what they write and the end of their attempt commit together, or neither does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.db.transaction import TransactionManagementError

from jobs.decisions import Cancelled, Failed, Snoozed
from jobs.handlers.base import JobContext, Snooze
from jobs.handlers.registry import HandlerProblem, handler
from jobs.lease import Ending, Lease, LeaseLost, assert_lease
from jobs.lifecycle.cancel import cancel_job
from jobs.lifecycle.reap import reap_expired
from jobs.models import Job
from jobs.worker.executor import Executor
from jobs.worker.outbox import Outbox
from orgs.models import Organization
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_one, executions_of, lapse, make_job, reload
from tests.threads import run_together
from tests.worker_parts import own_handlers

T = TypeVar("T")
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _own_handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("jobs.worker.executor.has_open_connection", lambda: False)
    with own_handlers():
        yield


class Run:
    """One attempt of a transactional handler that writes an organization, and does something more."""

    def __init__(self, queue: Queue, more: Callable[[JobContext], Any] = lambda ctx: None) -> None:
        def write(ctx: JobContext) -> Any:
            Organization.objects.create(name="written", slug="written")
            ctx.log("said")
            return more(ctx)

        handler("write", transactional=True)(write)
        self.job = make_job(queue, "write", max_attempts=5)
        self.lease = claim_one(queue)
        self.outbox = Outbox()
        self.endings: list[Ending | None] = []
        Executor(str(uuid7()), self.outbox, self._done).run_sync(self.lease)
        [self.ending] = self.endings

    def _done(self, lease: Lease, ending: Ending | None) -> None:
        self.endings.append(ending)

    @property
    def has_written(self) -> bool:
        return Organization.objects.filter(slug="written").exists()


def lines_of(job: Job) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("select message from job_logs where job_id = %s order by id", [job.pk])
        return [row[0] for row in cursor.fetchall()]


def by_others(work: Callable[[], T]) -> T:
    """Do something on another connection."""
    [result] = run_together([work])
    return result


def lose(token: str) -> None:
    """A lease runs out and is reaped, by others."""

    def reap() -> int:
        Job.objects.filter(lease_token=token).update(lease_expires_at=Now())
        return reap_expired(limit=10)

    assert by_others(reap) == 1


def test_effect_end_history_and_log_are_written_together(committed_queue: Queue) -> None:
    run = Run(committed_queue, lambda ctx: {"n": 1})

    job = reload(run.job)
    assert (job.status, job.result, job.attempt_count, run.has_written) == ("completed", {"n": 1}, 1, True)
    [attempt] = executions_of(job)
    assert (attempt.status, attempt.result) == ("completed", {"n": 1})
    assert run.ending is not None
    assert run.ending.written is not None
    assert run.ending.written.status == "completed"
    assert lines_of(job) == ["said"]
    assert not run.outbox


def raising(error: BaseException) -> Callable[[JobContext], None]:
    def more(ctx: JobContext) -> None:
        raise error

    return more


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        (raising(ValueError("x")), Failed),
        (raising(Snooze(5)), Snoozed),
        (lambda ctx: {1, 2}, Failed),  # a result that can not be stored
    ],
)
def test_whatever_does_not_succeed_writes_nothing_and_is_settled_by_the_worker(
    committed_queue: Queue, more: Any, kind: type
) -> None:
    run = Run(committed_queue, more)

    assert not run.has_written
    assert run.ending is not None
    assert isinstance(run.ending.verdict, kind)
    assert run.ending.written is None
    assert reload(run.job).status in ("claimed", "running")
    assert [line.message for line in run.outbox.empty()[0]] == ["said"]


def test_a_ghost_writes_nothing(committed_queue: Queue) -> None:
    run = Run(committed_queue, lambda ctx: lose(ctx.token))

    assert run.ending is None
    assert not run.has_written
    assert reload(run.job).status == "scheduled"


def ask_to_stop(job_id: str) -> None:
    cancel_job(UUID(job_id), reason="no longer wanted")


def test_an_answered_cancel_wins_over_what_was_written(committed_queue: Queue) -> None:
    run = Run(committed_queue, lambda ctx: by_others(lambda: ask_to_stop(ctx.job_id)))

    assert run.ending is not None
    assert isinstance(run.ending.verdict, Cancelled)
    assert not run.has_written


def test_an_async_handler_can_not_be_transactional() -> None:
    async def run(ctx: JobContext) -> None: ...

    with pytest.raises(HandlerProblem, match="no transactions for async code"):
        handler("x", transactional=True)(run)


# -- assert_lease ------------------------------------------------------------------------------------------------------
def test_a_transaction_of_ones_own_goes_on_under_its_lease_and_keeps_it(committed_queue: Queue) -> None:
    make_job(committed_queue)
    lease = claim_one(committed_queue)

    lapse(lease)

    with transaction.atomic():
        assert_lease(lease)
        assert by_others(lambda: reap_expired(limit=10)) == 0, "the row is locked until the commit"

    assert by_others(lambda: reap_expired(limit=10)) == 1


def test_a_transaction_of_a_ghost_is_refused_and_rolled_back(committed_queue: Queue) -> None:
    make_job(committed_queue)
    lease = claim_one(committed_queue)
    lose(lease.token)

    def write() -> None:
        with transaction.atomic():
            Organization.objects.create(name="written", slug="written")
            assert_lease(lease)

    with pytest.raises(LeaseLost, match=lease.job_id):
        write()
    assert not Organization.objects.filter(slug="written").exists()


def test_the_function_raises_an_error_with_a_name(committed_queue: Queue) -> None:
    make_job(committed_queue)
    lease = claim_one(committed_queue)

    with pytest.raises(Exception, match="lease_lost: job") as caught, connection.cursor() as cursor:
        cursor.execute("select assert_lease(%s, %s)", [lease.job_id, str(uuid7())])

    assert getattr(caught.value.__cause__, "sqlstate", None) == "PL001"


def test_without_a_transaction_there_is_nothing_to_protect(committed_queue: Queue) -> None:
    make_job(committed_queue)

    with pytest.raises(TransactionManagementError):
        assert_lease(claim_one(committed_queue))


def test_a_handler_that_finds_its_lease_lost_ends_without_a_result(committed_queue: Queue) -> None:
    def careful(ctx: JobContext) -> None:
        raise LeaseLost

    handler("careful")(careful)
    make_job(committed_queue, "careful")
    endings: list[Ending | None] = []
    Executor(str(uuid7()), Outbox(), lambda lease, ending: endings.append(ending)).run_sync(claim_one(committed_queue))

    assert endings == [None]
