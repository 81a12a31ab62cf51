"""Builds a worker's parts, starts them, waits for the signal to stop, and takes them down in order."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from uuid import UUID

from django.db import OperationalError

from jobs import metrics
from jobs.decisions import Cancelled, Interrupted
from jobs.handlers.base import Stopped
from jobs.handlers.registry import discover, known_types
from jobs.hints import CANCEL, CHANNEL, WORK
from jobs.lease import Ending
from jobs.lifecycle.claim import KnownTypes
from jobs.metrics_port import serve_metrics
from jobs.services import workers
from jobs.worker.announcer import Announcer
from jobs.worker.config import WorkerConfig
from jobs.worker.executor import Executor
from jobs.worker.heartbeat import Heartbeat, Held, State
from jobs.worker.isolation.attempt import Isolated
from jobs.worker.isolation.crew import Crew
from jobs.worker.lookout import Lookout
from jobs.worker.loop import Loop
from jobs.worker.outbox import Outbox
from jobs.worker.pool import Pool
from jobs.worker.watchdog import Watchdog
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import drop_connection
from scheduler_project.lib.listener import Listener
from scheduler_project.lib.signals import Message, SignalPipe

log = logs.get(__name__)

#: The interpreter lets another thread run this often; the default of 5 ms would make the loop wait for busy seats.
SWITCH_S = 0.001
#: After the grace: how long handlers may take to notice that they are to stop.
NOTICE_S = 1.0
FINISH_S = 10.0
#: A worker that starts while the database restarts waits for it this long.
START_LIMIT_S, START_PAUSE_S = 60.0, 0.5


class Runtime:
    """One worker process."""

    def __init__(self, config: WorkerConfig, crew: Crew, *, listen: bool) -> None:
        self._config = config
        self._signals = SignalPipe()
        self._worker_id = self._register(START_LIMIT_S)
        self._is_draining = False
        worker_id, outbox = str(self._worker_id), Outbox()
        names, patterns = known_types()
        self._loop = Loop(config, worker_id, KnownTypes.of(names, patterns), outbox, self._run_dry, self._hurry)
        self._crew = crew
        self._executor = Executor(worker_id, outbox, self._loop.done, Isolated(self._crew, outbox, worker_id).run)
        self._pool = self._loop.pool = Pool(config.seats, self._executor, self._loop.idle)
        self._announcer = self._loop.announcer = Announcer()
        self._lookout = Lookout()
        self._watchdog = Watchdog(
            self._executor, self._pool, config.seats, config.cancel_grace_s, self._loop.lease_of, self._signals.stop
        )
        self._heartbeat = Heartbeat(worker_id, config.heartbeat_s, self._state, self._lose, self._cancel)
        self._listener = Listener(CHANNEL, f"punctual listener {worker_id}", self._hear) if listen else None

    def _register(self, limit_s: float) -> UUID:
        """Register as a worker; a database that is restarting is waited for."""
        deadline = time.monotonic() + limit_s
        while True:
            try:
                return workers.register(queue_names=self._config.queue_names, seats=self._config.seats)
            except OperationalError as error:
                if time.monotonic() > deadline or self._signals.wait(START_PAUSE_S) is Message.STOP:
                    raise
                log.warning("database_away", error=str(error).strip(), retry_in_s=START_PAUSE_S)
                drop_connection()

    def run(self) -> None:
        """Work until told to stop, then drain."""
        sys.setswitchinterval(SWITCH_S)
        self._crew.start()
        self._serve_metrics()
        self._heartbeat.start()
        self._watchdog.start()
        if self._listener:
            self._listener.start()
        self._announcer.start()
        self._lookout.start()
        self._loop.start()
        log.info("worker_started", worker_id=str(self._worker_id), seats=self._config.seats, pid=os.getpid(),
                 queues=list(self._config.queue_names) or "all")  # fmt: skip
        self._signals.wait(None)
        code = 1
        try:
            self._drain()
            code = 0
        except Exception:  # boundary: a worker that was told to stop stops
            log.exception("drain_failed")
        sys.stderr.flush()
        # Handlers that heard nothing still sit in daemon threads; their leases are given back, nothing waits for them.
        os._exit(code)

    def _serve_metrics(self) -> None:
        """Gauges are read when they are asked for: nothing is kept up to date for a scrape that may never come."""
        metrics.WORKER_UP.labels(str(self._worker_id)).set(1)
        metrics.ACTIVE.labels(str(self._worker_id)).set_function(lambda: self._pool.busy)
        metrics.LISTENING.set_function(lambda: int(self._listener is not None and self._listener.is_listening))
        serve_metrics(self._config.metrics_port)

    def _drain(self) -> None:
        """Stop claiming, give back what has not begun, wait the grace, interrupt, give back, deregister."""
        log.info("worker_draining", running=self._pool.busy, grace_s=self._config.grace_s)
        self._is_draining = True
        self._loop.stop_claiming()
        self._heartbeat.beat_now()
        if not self._until(lambda: self._pool.busy == 0, self._config.grace_s):
            self._interrupt()
        self._loop.finish(FINISH_S)
        self._crew.close()
        self._announcer.stop()
        self._lookout.stop()
        if self._listener:
            self._listener.stop()
        self._heartbeat.stop()
        _deregister(self._worker_id)
        log.info("worker_stopped", worker_id=str(self._worker_id), left_behind=self._pool.busy)

    def _interrupt(self) -> None:
        contexts = list(self._executor.running.values())
        log.warning("handlers_interrupted", count=len(contexts), jobs=[ctx.job_id for ctx in contexts][:20])
        for ctx in contexts:
            ctx.stop("interrupted")
        self._until(lambda: self._pool.busy == 0, NOTICE_S / 2)
        for ctx in contexts:
            ctx.kill()
        for thread_id in self._pool.thread_ids() if self._pool.busy else []:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(_Interruption))
        self._until(lambda: self._pool.busy == 0, NOTICE_S / 2)
        written = self._loop.pending_tokens()
        for lease in self._loop.in_hand():
            if lease.token not in written:
                running = self._executor.running.get(lease.token)
                ran_ms = None if running is None else round((time.monotonic() - running.started) * 1000, 3)
                self._loop.done(lease, Ending.of(lease, Interrupted(), str(self._worker_id), ran_ms))

    def _until(self, condition: Callable[[], bool], limit_s: float) -> bool:
        """Wait for a condition; False when the time is up or another signal came."""
        deadline = time.monotonic() + limit_s
        while not condition():
            left_s = deadline - time.monotonic()
            if left_s <= 0 or self._signals.wait(min(left_s, 0.02)) is Message.STOP:
                return condition()
        return True

    # -- called by the parts -----------------------------------------------------------------------------------
    def _state(self) -> State:
        self._crew.tidy()
        held = [Held(lease.job_id, lease.token, lease.lease_s) for lease in self._loop.in_hand()]
        return State(held, "draining" if self._is_draining else "active", self._pool.busy)

    def _lose(self, tokens: list[str]) -> None:
        dropped = {lease.token: lease for lease in self._pool.drop(set(tokens))}
        for token in tokens:
            if lease := dropped.get(token):
                self._loop.done(lease, None)
            elif ctx := self._executor.running.get(token):
                log.warning("lease_lost", job_id=ctx.job_id, job_type=ctx.job_type)
                ctx.stop("lost")

    def _cancel(self, tokens: list[str]) -> None:
        for lease in self._pool.drop(set(tokens)):
            verdict = Cancelled("cancelled on request before it began")
            self._loop.done(lease, Ending.of(lease, verdict, str(self._worker_id)))
        for token in tokens:
            if ctx := self._executor.running.get(token):
                ctx.stop("cancelled")

    def _hear(self, kind: str, subject: str) -> None:
        if kind == CANCEL:
            if any(lease.job_id == subject for lease in self._loop.in_hand()):
                self._heartbeat.beat_now()
        elif kind in ("", WORK):
            self._loop.hint(subject)

    def _hurry(self, lease_s: float) -> None:
        self._heartbeat.hurry(lease_s)

    def _run_dry(self) -> None:
        if self._config.mode != "serve":
            self._signals.stop()


class _Interruption(Stopped):
    """Stopped, in the form in which it can be thrown into a thread."""

    def __init__(self) -> None:
        super().__init__("interrupted")


def _deregister(worker_id: UUID) -> None:
    try:
        workers.deregister(worker_id)
    except Exception as error:  # noqa: BLE001 - boundary: the scheduler retires it when it falls silent
        log.warning("worker_not_deregistered", error=str(error))


def run(config: WorkerConfig, *, listen: bool) -> None:
    """Run a worker in this process; returns never, the process ends."""
    discover()
    drop_connection()  # queues may have been looked up; and some module may have asked the database
    crew = Crew()
    crew.fork()
    Runtime(config, crew, listen=listen).run()
