"""The scheduler daemon: leads if it can, does its duties while it leads, and stands by otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from jobs import metrics
from jobs.hints import CHANNEL, DUE, QUIET_S
from jobs.metrics_port import serve_metrics
from jobs.scheduler.duties import (
    alerts,
    batches,
    circuits,
    cron,
    expire,
    operations,
    outgoing,
    partitions,
    promote,
    reap,
    retain,
    statistics,
    tidy,
    workers,
)
from jobs.scheduler.duties.base import Duty
from jobs.scheduler.leader import Leadership
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import drop_connection, session
from scheduler_project.lib.listener import Listener
from scheduler_project.lib.signals import Message, SignalPipe

log = logs.get(__name__)

STANDBY_S = 0.25
#: The duties that a hint is for.
WOKEN = ("cron", "promote", "batches", "circuits", "operations")
LOOK_FOR_FROZEN_S = 1.0
RENEW_S = 1.0
LOOK_AGAIN_S = QUIET_S + 0.01
LONGEST_PAUSE_S = 2.0


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """Times and the lock of one scheduler.

    Attributes:
        frozen_after_s: a leader whose session did nothing for so long is deposed.
        silent_s: a worker not seen for so long is lost.
    """

    poll_s: float = settings.SCHEDULER_POLL_INTERVAL_MS / 1000
    reap_s: float = settings.SCHEDULER_LEASE_REAPER_INTERVAL_SECS
    lock_id: int = settings.SCHEDULER_ADVISORY_LOCK_ID
    frozen_after_s: float = max(8.0, 4 * settings.SCHEDULER_POLL_INTERVAL_MS / 1000)
    silent_s: float = max(30.0, 3.0 * settings.WORKER_HEARTBEAT_INTERVAL_SECS)
    metrics_port: int | None = 0


def duties_of(config: SchedulerConfig) -> list[Duty]:
    """All duties of a leader; made anew for each term, so that none carries over what an earlier one believed."""
    return [
        cron.duty(config.poll_s),
        promote.duty(config.poll_s),
        expire.duty(config.poll_s),
        batches.duty(config.poll_s),
        circuits.duty(config.poll_s),
        operations.duty(config.poll_s),
        reap.duty(config.reap_s),
        workers.duty(min(10.0, config.silent_s / 3), config.silent_s),
        statistics.duty(1.0),
        outgoing.duty(1.0),
        alerts.duty(5.0),
        partitions.duty(3600.0),
        retain.duty(600.0),
        tidy.duty(60.0),
    ]


class Daemon:
    """One scheduler process."""

    def __init__(
        self, config: SchedulerConfig, *, listen: bool, make_duties: Callable[[], list[Duty]] | None = None
    ) -> None:
        self._config = config
        self._make_duties = make_duties or (lambda: duties_of(config))
        self._leadership = Leadership(config.lock_id, config.frozen_after_s)
        self._signals = SignalPipe()
        self._listener = Listener(CHANNEL, "punctual scheduler listener", self._hear) if listen else None
        self._due: dict[str, float] = {}
        self._duties: list[Duty] = []
        self._look_for_frozen_at = 0.0
        self._again_at = float("inf")
        self._renew_at = 0.0
        self._pause_s = STANDBY_S

    def run(self) -> None:
        """Lead or stand by until told to stop."""
        metrics.LISTENING.set_function(lambda: int(self._listener is not None and self._listener.is_listening))
        serve_metrics(self._config.metrics_port)
        if self._listener:
            self._listener.start()
        log.info("scheduler_started")
        wait_s = 0.0
        while (message := self._signals.wait(wait_s)) is not Message.STOP:
            if message is Message.WAKE:
                self._look(again=True)
            wait_s = self._turn()
        self._stop()

    def _look(self, *, again: bool) -> None:
        """Something may be due: now and, since a sender keeps quiet for a while after a hint, once more after that."""
        self._due.update(dict.fromkeys(WOKEN, 0.0))
        self._again_at = time.monotonic() + LOOK_AGAIN_S if again else float("inf")

    def _turn(self) -> float:
        """Do what is to be done now; seconds until there is more."""
        try:
            wait_s = self._lead() if self._leadership.is_held or self._take_over() else STANDBY_S
            self._pause_s = STANDBY_S
            return wait_s
        except (DatabaseError, InterfaceError) as error:
            self._leadership.lose()
            log.warning("database_away", error=str(error).strip(), retry_in_s=self._pause_s)
            drop_connection()
            wait_s, self._pause_s = self._pause_s, min(self._pause_s * 2, LONGEST_PAUSE_S)
            return wait_s

    def _take_over(self) -> bool:
        self._leadership.lose()
        if self._leadership.try_to_take():
            self._duties, self._due = self._make_duties(), {}
            return True
        if time.monotonic() >= self._look_for_frozen_at:
            self._look_for_frozen_at = time.monotonic() + LOOK_FOR_FROZEN_S
            self._leadership.depose_frozen()
        return False

    def _lead(self) -> float:
        if time.monotonic() >= self._again_at:
            self._look(again=False)
        for duty in self._duties:
            if self._due.get(duty.name, 0.0) <= time.monotonic():
                self._do(duty)
        if time.monotonic() >= self._renew_at:
            self._renew_at = time.monotonic() + RENEW_S
            if not self._leadership.renew():
                raise InterfaceError("the session that led is gone")
        soonest = min([self._due[duty.name] for duty in self._duties] + [self._again_at, self._renew_at])
        return min(self._config.poll_s, max(0.0, soonest - time.monotonic()))

    def _do(self, duty: Duty) -> None:
        """One round of a duty; its failure is its own, unless the session is gone."""
        next_s: float | None = None
        began = time.monotonic()
        metrics.LAG.set(max(0.0, began - self._due.get(duty.name, began)) if self._due.get(duty.name) else 0.0)
        try:
            next_s = duty.run()
        except Exception as error:  # boundary: a failing duty never stops another
            if session() is None:
                raise InterfaceError(str(error)) from error
            metrics.DUTY_FAILURES.labels(duty.name).inc()
            log.exception("duty_failed", duty=duty.name, error=str(error))
        metrics.DUTY_S.labels(duty.name).observe(time.monotonic() - began)
        self._due[duty.name] = time.monotonic() + (duty.every_s if next_s is None else next_s)

    def _hear(self, kind: str, _subject: str) -> None:
        if kind in ("", DUE):
            self._signals.wake()

    def _stop(self) -> None:
        try:
            self._leadership.give_up()
        except (DatabaseError, InterfaceError) as error:
            log.warning("term_not_ended", error=str(error))
        drop_connection()
        if self._listener:
            self._listener.stop()
        log.info("scheduler_stopped")
