"""Other schedulers in Python that live in PostgreSQL, and Punctual: the same jobs, the same server, in turns.

Each peer runs as its authors mean it to run fast (with_….py), in a database of its own, by a Python of its own: they
are no part of the product. They keep less: PgQueuer three lines of a log for each job, Chancy and Procrastinate the
job itself; Punctual keeps each attempt, its fence, limits and statistics.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from jobs.bench.enqueue import PROGRAM as ENQUEUE
from jobs.bench.latency import late
from jobs.bench.stage import Drain, Say, backends, cpu_s, drain_of, fill, make_queue, pause, workers
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch, empty_beside

#: Made by ``make peers``.
PYTHON = settings.BASE_DIR / ".venv-peers" / "bin" / "python"
ROUNDS = 3
LOOK_EVERY_S = 0.05
#: A peer that is as slow as this is not given more jobs: it would only take longer.
LONG_S, AT_LEAST = 6.0, 1_000
PICK_UPS = 200


@dataclass(frozen=True, slots=True)
class Kind:
    """A peer: how it is called, a query that tells whether it has work left, and what Punctual is to be of it.

    ``targets`` are of ENGINE's kind: at least so many times its rate, at most that part of its time.
    """

    name: str
    is_left: str
    targets: dict[str, float]


KINDS = (
    Kind(
        "pgqueuer",
        "select exists (select from pgqueuer)",
        {
            "drain_1": 1.3,
            "drain_2": 1.2,
            "bulk": 2.0,
            "single": 1.3,
            "pick_up_p50": 0.65,
            "pick_up_p99": 1.0,
            "cpu": 0.75,
        },
    ),
    Kind(
        "chancy",
        "select exists (select from chancy_jobs where state in ('pending', 'running', 'retrying'))",
        {"drain_1": 5.0},
    ),
    Kind(
        "procrastinate",
        "select exists (select from procrastinate_jobs where status in ('todo', 'doing'))",
        {"drain_1": 40.0},
    ),
)
#: Of these less is better.
TIMES = ("pick_up_p50", "pick_up_p99", "cpu")


class Peer:
    """One of them, installed in a database of its own."""

    def __init__(self, kind: Kind, database: Scratch, jobs: int) -> None:
        self.kind, self._database = kind, database
        self._jobs = max(AT_LEAST, jobs // 1_000 * 1_000)
        self._run("install")

    def bulk(self) -> float:
        """Jobs a second, many in a call; they wait to be drained."""
        return float(self._run("bulk", self._jobs)["rate"])

    def single(self, count: int) -> float:
        """Jobs a second, one by one."""
        return float(self._run("single", count)["rate"])

    def drain(self, processes: int) -> Drain:
        """Let workers do what waits: from the first job that began until none is left, as the database has it."""
        with self._database.connect() as session, self._workers(processes) as started:
            while session.execute(self.kind.is_left.encode()).fetchone() == (True,):
                time.sleep(LOOK_EVERY_S)
            ended_at, server_s = time.time(), cpu_s(backends(session))
            told = [_told_by(process) for process in started]
        took = ended_at - min(one["first_at"] for one in told if one["count"])
        count = sum(one["count"] for one in told)
        if count / took * LONG_S < self._jobs:
            self._jobs = max(AT_LEAST, int(count / took * LONG_S) // 1_000 * 1_000)
        return Drain(count / took, sum(one["cpu_s"] for one in told) / count * 1e6, server_s / count * 1e6)

    def late_ms(self, count: int) -> list[float]:
        """Milliseconds from the commit of a job to the start of its handler, on an idle worker."""
        with self._database.connect() as session, self._workers(1) as [worker]:
            self._run("single", 1)
            while session.execute(self.kind.is_left.encode()).fetchone() == (True,):
                time.sleep(LOOK_EVERY_S)
            committed = self._run("spaced", count)["committed"]
            while session.execute(self.kind.is_left.encode()).fetchone() == (True,):
                time.sleep(LOOK_EVERY_S)
            began = _told_by(worker)["began"]
        return [(began[number] - at) * 1000 for number, at in committed.items()]

    @contextmanager
    def _workers(self, processes: int) -> Iterator[list[subprocess.Popen[bytes]]]:
        started = [subprocess.Popen(self._command("work"), **_OF_PROGRAMS) for _ in range(processes)]
        try:
            yield started
        finally:
            for process in started:
                process.kill()
                process.wait()

    def _run(self, command: str, count: int = 0) -> dict[str, Any]:
        done = subprocess.run([*self._command(command), str(count)], check=True, **_OF_PROGRAMS)
        return json.loads(done.stdout or "{}")  # type: ignore[no-any-return]

    def _command(self, command: str) -> list[str]:
        return [str(PYTHON), "-m", f"jobs.bench.peers.with_{self.kind.name}", command, self._database.url]


_OF_PROGRAMS: dict[str, Any] = {
    "cwd": settings.BASE_DIR,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.DEVNULL,
}


def _told_by(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    process.terminate()
    out, _ = process.communicate(timeout=30)
    return json.loads(out)  # type: ignore[no-any-return]


class Ours:
    """Punctual, measured as the peers are."""

    def __init__(self, scratch: Scratch, jobs: int) -> None:
        self._scratch, self._jobs = scratch, jobs
        with scratch.connect() as session:
            self._drained, self._sent, self._single = (
                make_queue(session, name) for name in ("drain", "send", "single")
            )

    def drain(self, processes: int) -> Drain:
        """From the release of a full queue to the end of the last job."""
        pause(self._scratch, self._drained)
        fill(self._scratch, self._drained, self._jobs)
        return drain_of(self._scratch, [self._drained], self._jobs, processes)

    def enqueue(self) -> dict[str, float]:
        """Jobs a second, in bulk and one by one."""
        asked = json.dumps({"queue_id": str(self._sent), "jobs": self._jobs})
        found = self._scratch.run(ENQUEUE, asked, DJANGO_SETTINGS_MODULE="scheduler_project.settings")
        with self._scratch.connect() as session:
            session.execute("delete from jobs where queue_id = %s", [self._sent])
        return json.loads(found)  # type: ignore[no-any-return]

    def late_ms(self, count: int) -> list[float]:
        """Milliseconds from the commit of a job to the start of its handler, on an idle worker."""
        with workers(self._scratch, 1):
            return late(self._scratch, self._single, count)


def is_there() -> bool:
    """Were the peers installed?"""
    return PYTHON.exists()


def peers(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """Drains, submissions and pick-up of each, in turns; what Punctual is of each peer."""
    if not is_there():
        raise CommandError("The peers are not installed: make peers")
    with ExitStack() as stack:
        them = [Peer(kind, stack.enter_context(empty_beside(scratch, kind.name)), jobs) for kind in KINDS]
        ours = Ours(scratch, jobs)
        found = [_measure(ours, them, say) for _ in range(ROUNDS)]
        say(f"{PICK_UPS} single jobs for an idle worker of each")
        late_ms = {"punctual": ours.late_ms(PICK_UPS), **{peer.kind.name: peer.late_ms(PICK_UPS) for peer in them}}
    middle = {
        who: {what: statistics.median(one[who][what] for one in found) for what in found[0][who]} for who in found[0]
    }
    for who, some in late_ms.items():
        middle[who] |= {"pick_up_p50": statistics.median(some), "pick_up_p99": statistics.quantiles(some, n=100)[98]}
    return [*_figures(middle["punctual"], "punctual"), *(f for kind in KINDS for f in _compared(middle, kind))]


def _measure(ours: Ours, them: list[Peer], say: Say) -> dict[str, dict[str, float]]:
    """One round: who -> what -> value."""
    found: dict[str, dict[str, float]] = {name: {} for name in ("punctual", *(peer.kind.name for peer in them))}
    for processes in (1, 2):
        say(f"drains by {processes} worker process(es) of each, in turns")
        for who, drain in [
            ("punctual", ours.drain(processes)),
            *((p.kind.name, _filled(p, found, processes)) for p in them),
        ]:
            found[who][f"drain_{processes}"] = drain.rate
            if processes == 1:
                found[who] |= {"worker_cpu": drain.worker_us, "cpu": drain.worker_us + drain.server_us}
    say("submissions, in turns")
    rates = ours.enqueue()
    found["punctual"] |= {"bulk": rates["bulk"], "single": rates["single"]}
    for peer in them:
        found[peer.kind.name]["single"] = peer.single(500)
        peer.drain(1)
    return found


def _filled(peer: Peer, found: dict[str, dict[str, float]], processes: int) -> Drain:
    found[peer.kind.name]["bulk"] = peer.bulk()
    return peer.drain(processes)


_UNITS = {"worker_cpu": "us/job", "cpu": "us/job", "pick_up_p50": "ms", "pick_up_p99": "ms"}


def _figures(values: dict[str, float], who: str) -> list[Figure]:
    return [Figure(f"{who}_{what}", value, _UNITS.get(what, "jobs/s")) for what, value in values.items()]


def _compared(middle: dict[str, dict[str, float]], kind: Kind) -> list[Figure]:
    its, ours = middle[kind.name], middle["punctual"]
    shares = [
        Figure(f"{what}_of_{kind.name}", ours[what] / its[what], "", kind.targets.get(what), is_most=what in TIMES)
        for what in its
        if what != "worker_cpu"
    ]
    return [*_figures(its, kind.name), *shares]
