"""Leadership on real sessions: one holds it, and who lost its session can do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import psycopg
import pytest
from django.db import DatabaseError, InterfaceError, connection
from django.db.models.functions import Now

from jobs.lifecycle.promote import promote_due
from jobs.models import Job, LeaderTerm
from jobs.scheduler.leader import Leadership
from queues.models import Queue
from scheduler_project.lib.dbthreads import drop_connection
from tests.factories import make_job, reload
from tests.threads import Session
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

LOCK = 4_217


@pytest.fixture
def one(transactional_db: None) -> Iterator[Session]:
    """A session of its own."""
    with Session() as session:
        yield session


@pytest.fixture
def other(transactional_db: None) -> Iterator[Session]:
    """Another session."""
    with Session() as session:
        yield session


def leadership(frozen_after_s: float = 8.0) -> Leadership:
    return Leadership(LOCK, frozen_after_s)


def backend_pid() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return int(cursor.fetchone()[0])


def kill(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(%s, 5000)", [pid])


def holder() -> int | None:
    """The session that holds the lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select pid from pg_locks where locktype = 'advisory' and objid = %s and granted"
            " and database = (select oid from pg_database where datname = current_database())",
            [LOCK],
        )
        row = cursor.fetchone()
        return row[0] if row else None


def test_only_one_of_two_leads(one: Session, other: Session) -> None:
    first, second = leadership(), leadership()

    assert one(first.try_to_take) is True
    assert other(second.try_to_take) is False

    assert one(lambda: first.is_held) is True
    assert other(lambda: second.is_held) is False
    assert LeaderTerm.objects.count() == 1


def test_the_term_says_which_session_leads_and_that_it_is_at_work(one: Session) -> None:
    leader = leadership()
    one(leader.try_to_take)
    term = LeaderTerm.objects.get()

    assert one(leader.renew) is True

    renewed = LeaderTerm.objects.get()
    assert (term.pk, term.backend_pid) == (leader.term, one(backend_pid))
    assert term.backend_pid == holder()
    assert renewed.renewed_at > term.renewed_at
    assert renewed.acquired_at == term.acquired_at


def test_terms_are_numbered_upwards_from_leader_to_leader(one: Session, other: Session) -> None:
    terms: list[int] = []
    for session, standby in [(one, other), (other, one)] * 3:
        leader = leadership()
        wait_until(partial(session, leader.try_to_take), timeout_s=5)
        assert leader.term is not None
        terms.append(leader.term)
        assert standby(leadership().try_to_take) is False
        session(leader.give_up)
        session(drop_connection)

    assert terms == sorted(set(terms))
    assert LeaderTerm.objects.filter(ended_at=None).count() == 0


def test_giving_up_writes_the_end_down_and_closing_the_session_frees_the_lock(one: Session, other: Session) -> None:
    leader = leadership()
    one(leader.try_to_take)

    one(leader.give_up)
    assert LeaderTerm.objects.get().ended_at is not None
    assert one(leader.renew) is False
    one(drop_connection)

    wait_until(lambda: other(leadership().try_to_take), timeout_s=5)


def test_a_leader_whose_session_was_killed_holds_nothing_and_writes_nothing(
    one: Session, other: Session, committed_queue: Queue
) -> None:
    job = make_job(committed_queue, delay_s=3_600)
    Job.objects.filter(pk=job.pk).update(run_at=Now())
    leader = leadership()
    one(leader.try_to_take)
    renewed_at = LeaderTerm.objects.get().renewed_at

    kill(one(backend_pid))

    with pytest.raises((DatabaseError, InterfaceError)):
        one(lambda: promote_due(limit=10))
    with pytest.raises((DatabaseError, InterfaceError)):
        one(leader.renew)
    assert one(lambda: leader.is_held) is False
    assert reload(job).status == "scheduled"
    assert LeaderTerm.objects.get().renewed_at == renewed_at
    wait_until(lambda: other(leadership().try_to_take), timeout_s=5)


def test_a_leader_that_opened_a_new_session_is_no_longer_the_leader(one: Session) -> None:
    leader = leadership()
    one(leader.try_to_take)

    one(drop_connection)
    one(backend_pid)

    assert one(lambda: leader.is_held) is False
    assert one(leader.renew) is False


def test_losing_is_noted_once_and_can_be_followed_by_leading_again(one: Session) -> None:
    leader = leadership()
    one(leader.try_to_take)
    one(drop_connection)

    leader.lose()
    leader.lose()

    assert leader.term is None
    wait_until(lambda: one(leader.try_to_take), timeout_s=5)
    assert one(lambda: leader.is_held) is True


def test_a_leader_that_sits_idle_is_deposed_and_the_next_one_leads(one: Session, other: Session) -> None:
    frozen, standby = leadership(), leadership(frozen_after_s=0.0)
    one(frozen.try_to_take)
    pid = one(backend_pid)

    other(standby.depose_frozen)

    wait_until(lambda: holder() is None, timeout_s=5)
    assert other(standby.try_to_take) is True
    assert holder() != pid
    with pytest.raises((DatabaseError, InterfaceError)):
        one(frozen.renew)


def test_a_leader_that_was_at_work_a_moment_ago_is_left_alone(one: Session, other: Session) -> None:
    leader = leadership()
    one(leader.try_to_take)

    other(leadership(frozen_after_s=60.0).depose_frozen)

    assert one(leader.renew) is True


def test_a_leader_in_a_long_statement_is_not_idle(one: Session, other: Session) -> None:
    leader = leadership()
    one(leader.try_to_take)
    pid = one(backend_pid)
    with psycopg.connect(**connection.get_connection_params()) as blocker:
        blocker.execute("select pg_advisory_lock(99)")
        working = one.begin(lambda: connection.cursor().execute("select pg_advisory_lock(99)"))
        wait_until(lambda: is_waiting(pid), timeout_s=5)

        other(leadership(frozen_after_s=0.0).depose_frozen)

        assert holder() == pid
    working.result(10)
    assert one(leader.renew) is True


def is_waiting(pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("select wait_event_type = 'Lock' from pg_stat_activity where pid = %s", [pid])
        return bool(cursor.fetchone()[0])


def test_idle_sessions_that_hold_other_locks_are_left_alone(one: Session, other: Session) -> None:
    one(lambda: connection.cursor().execute("select pg_advisory_lock(%s)", [LOCK + 1]))
    one(lambda: connection.cursor().execute("select pg_advisory_lock(0, %s)", [LOCK]))
    pid = one(backend_pid)

    other(leadership(frozen_after_s=0.0).depose_frozen)

    assert one(backend_pid) == pid


def test_leaders_of_different_lock_numbers_do_not_meet(one: Session, other: Session) -> None:
    assert one(Leadership(2**40 + 5, 8.0).try_to_take) is True
    assert other(Leadership(2**41 + 5, 8.0).try_to_take) is True


def test_of_many_that_try_at_once_one_leads(transactional_db: None) -> None:
    sessions = [Session() for _ in range(6)]
    try:
        taken = [session.begin(leadership().try_to_take) for session in sessions]
        assert sorted(future.result(10) for future in taken) == [False] * 5 + [True]
    finally:
        for session in sessions:
            session.__exit__()
