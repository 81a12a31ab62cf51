"""The daemon: leads if it can, does each duty when it is due, and lets none stop another."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection

from jobs.models import LeaderTerm
from jobs.scheduler import daemon as module
from jobs.scheduler.daemon import LOOK_AGAIN_S, RENEW_S, STANDBY_S, Daemon, SchedulerConfig
from jobs.scheduler.duties.base import Duty
from tests.clocks import StandingClock
from tests.threads import Session
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

LOCK = 4_218


class Duties:
    """Duties that count their rounds; any may be told to fail or to ask for its next round."""

    def __init__(self) -> None:
        self.rounds: Counter[str] = Counter()
        self.made = 0
        self.deeds: dict[str, Callable[[], float | None]] = {}

    def make(self) -> list[Duty]:
        """As for a new term."""
        self.made += 1
        return [Duty(name, every_s, lambda name=name: self._do(name)) for name, every_s in  # type: ignore[misc]
                (("promote", 2.0), ("second", 5.0), ("third", 20.0))]  # fmt: skip

    def _do(self, name: str) -> float | None:
        self.rounds[name] += 1
        deed = self.deeds.get(name)
        return deed() if deed else None


@pytest.fixture
def duties() -> Duties:
    """Three duties, due every 2, 5 and 20 seconds."""
    return Duties()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    """The daemon's clock."""
    clock = StandingClock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    """A daemon takes over the process's signals; give them back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        signal.signal(number, handler)


@contextmanager
def scheduler(duties: Duties) -> Iterator[tuple[Daemon, Session]]:
    """A daemon and the session in which it is to be driven."""
    daemon = Daemon(SchedulerConfig(lock_id=LOCK, poll_s=2.0), listen=False, make_duties=duties.make)
    with Session() as session:
        yield daemon, session


def kill_leader() -> None:
    with connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(%s, 5000)", [LeaderTerm.objects.latest("id").backend_pid])


def test_a_new_leader_does_every_duty_at_once(duties: Duties, clock: StandingClock) -> None:
    with scheduler(duties) as (daemon, session):
        wait_s = session(daemon._turn)

    assert duties.rounds == {"promote": 1, "second": 1, "third": 1}
    assert wait_s == pytest.approx(1.0), "the term is renewed each second"


def test_each_duty_is_done_again_when_it_is_due(duties: Duties, clock: StandingClock) -> None:
    with scheduler(duties) as (daemon, session):
        for _ in range(41):
            session(daemon._turn)
            clock.now += 0.5

    assert duties.rounds == {"promote": 11, "second": 5, "third": 2}


def test_a_duty_may_ask_for_its_next_round_itself(duties: Duties, clock: StandingClock) -> None:
    duties.deeds["third"] = lambda: 0.25
    with scheduler(duties) as (daemon, session):
        waits = []
        for _ in range(4):
            waits.append(session(daemon._turn))
            clock.now += 0.25

    assert waits == pytest.approx([0.25] * 4)
    assert duties.rounds == {"promote": 1, "second": 1, "third": 4}


@pytest.mark.parametrize(
    "error", [ValueError("my own fault"), OperationalError("canceling statement"), AssertionError()]
)
def test_a_failing_duty_stops_no_other_and_is_done_again_after_its_period(
    duties: Duties, clock: StandingClock, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise error

    duties.deeds["promote"] = fail
    with scheduler(duties) as (daemon, session):
        session(daemon._turn)
        clock.now += 2.0
        session(daemon._turn)
        clock.now += 3.0
        session(daemon._turn)

    assert duties.rounds == {"promote": 3, "second": 2, "third": 1}
    assert caplog.text.count("duty_failed") == 3
    assert duties.made == 1


def test_a_duty_that_loses_the_session_ends_the_term_and_the_next_one_starts_afresh(
    duties: Duties, clock: StandingClock, caplog: pytest.LogCaptureFixture
) -> None:
    def kill_and_ask() -> None:
        if duties.made == 1:
            kill_leader_in(main)
            LeaderTerm.objects.count()

    duties.deeds["promote"] = kill_and_ask
    with Session() as main, scheduler(duties) as (daemon, session):
        session(daemon._turn)
        assert duties.rounds == {"promote": 1}

        wait_until(lambda: session(daemon._turn) and duties.made == 2, timeout_s=10)

    assert duties.rounds == {"promote": 2, "second": 1, "third": 1}
    assert "leadership_lost" in caplog.text
    assert LeaderTerm.objects.count() == 2


def kill_leader_in(session: Session) -> None:
    session(kill_leader)


def test_a_leader_whose_session_died_between_two_turns_does_no_duty_before_it_leads_again(
    duties: Duties, clock: StandingClock
) -> None:
    seen: list[tuple[int, int]] = []
    duties.deeds["second"] = lambda: seen.append((duties.made, LeaderTerm.objects.count()))
    with scheduler(duties) as (daemon, session):
        session(daemon._turn)
        kill_leader()
        clock.now += 60
        wait_until(lambda: session(daemon._turn) and duties.made == 2, timeout_s=10)

    assert seen == [(1, 1), (2, 2)]


def test_a_standby_does_nothing_and_looks_often_for_the_lock(duties: Duties, clock: StandingClock) -> None:
    idle = Duties()
    with scheduler(duties) as (leader, session), scheduler(idle) as (standby, other):
        session(leader._turn)
        waits = [other(standby._turn) for _ in range(3)]

    assert waits == [STANDBY_S] * 3
    assert not idle.rounds


def test_a_standby_leads_once_the_leader_is_gone(duties: Duties, clock: StandingClock) -> None:
    idle = Duties()
    with scheduler(idle) as (standby, other):
        with scheduler(duties) as (leader, session):
            session(leader._turn)
            other(standby._turn)
            session(leader._stop)
        wait_until(lambda: other(standby._turn) and idle.made, timeout_s=5)

    assert idle.rounds == {"promote": 1, "second": 1, "third": 1}
    first, second = LeaderTerm.objects.order_by("id")
    assert first.ended_at is not None
    assert second.ended_at is None


def test_while_the_database_is_away_the_pauses_grow_up_to_a_limit(
    duties: Duties, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> bool:
        raise OperationalError("connection refused")

    with scheduler(duties) as (daemon, session):
        with monkeypatch.context() as patch:
            patch.setattr(daemon._leadership, "try_to_take", away)
            pauses = [session(daemon._turn) for _ in range(6)]
        session(daemon._turn)

    assert pauses == [0.25, 0.5, 1.0, 2.0, 2.0, 2.0]
    assert duties.made == 1
    assert daemon._pause_s == STANDBY_S


def test_a_hint_brings_promotion_forward_and_a_stop_ends_the_daemon_in_good_order(duties: Duties) -> None:
    with scheduler(duties) as (daemon, session):
        running = session.begin(daemon.run)
        wait_until(lambda: duties.rounds["third"] == 1, timeout_s=10)

        daemon._hear("due", "")
        wait_until(lambda: duties.rounds["promote"] >= 2, timeout_s=1.5, what="promotion before its two seconds")
        daemon._hear("work", "some-queue")
        daemon._signals.stop()
        running.result(10)

    assert duties.rounds["second"] == 1
    assert LeaderTerm.objects.get().ended_at is not None


def test_after_a_hint_the_daemon_looks_once_more_when_the_senders_quiet_time_is_over(
    duties: Duties, clock: StandingClock
) -> None:
    with scheduler(duties) as (daemon, session):
        session(daemon._turn)
        daemon._look(again=True)

        waits = []
        for _ in range(3):
            waits.append(session(daemon._turn))
            clock.now += LOOK_AGAIN_S

    assert duties.rounds["promote"] == 3
    assert waits[0] == pytest.approx(LOOK_AGAIN_S)
    assert duties.rounds["second"] == 1


def test_a_leader_with_nothing_to_do_still_shows_every_second_that_it_is_at_work(
    duties: Duties, clock: StandingClock
) -> None:
    for name in ("promote", "second", "third"):
        duties.deeds[name] = lambda: 3_600.0
    with scheduler(duties) as (daemon, session):
        seen = set()
        for _ in range(4):
            wait_s = session(daemon._turn)
            seen.add(LeaderTerm.objects.get().renewed_at)
            clock.now += wait_s

    assert wait_s <= RENEW_S
    assert len(seen) == 4


def test_a_burst_of_hints_is_not_a_burst_of_rounds_for_other_duties(duties: Duties) -> None:
    with scheduler(duties) as (daemon, session):
        for _ in range(5_000):
            daemon._hear("due", "")
        daemon._signals.stop()
        session.begin(daemon.run).result(60)

    assert duties.rounds["second"] <= 1
