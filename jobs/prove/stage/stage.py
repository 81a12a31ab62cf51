"""The stage of one proof: its scratch database, its processes, its sink, and how it tells what it does."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

import psycopg

from jobs.lifecycle.submit import NewJob, Submitted, submit_jobs
from jobs.prove.stage.process import Place, Process
from jobs.prove.stage.proof import NotReached
from orgs.models import Organization, Project
from queues.models import Queue
from scheduler_project.lib.dbthreads import drop_connection
from scheduler_project.lib.networks import Host
from scheduler_project.lib.pg import use_database

T = TypeVar("T")

SINK = """
create unlogged table if not exists prove_effects (
  job_id uuid, attempt int, fencing_number bigint, kind text, pid int, at timestamptz default clock_timestamp()
);
create unlogged table if not exists prove_sink (
  job_id uuid primary key, fencing_number bigint not null, went_back bool not null default false
);
"""
#: Jobs of a proof are submitted so many at a time.
AT_ONCE = 1_000


class Stage:
    """Everything a proof needs. Its processes are gone when it closes, whatever happened."""

    def __init__(
        self, proof: str, url: str, sizes: Mapping[str, int], guard: str, tell: Callable[[str, str], None]
    ) -> None:
        self.url, self._tell = url, tell
        self._proof, self._sizes, self._guard = proof, sizes, guard
        self._processes = contextlib.ExitStack()
        self._session: psycopg.Connection[Any] | None = None

    def __getitem__(self, name: str) -> int:
        """A parameter's value."""
        return self._sizes[name]

    def say(self, text: str) -> None:
        """Tell how far it is."""
        self._tell("progress", text)

    def not_staged(self, text: str) -> None:
        """Tell that a part of the proof can not be staged here, and why; its figures are left out."""
        self._tell("note", f"not staged: {text}")

    # -- processes ---------------------------------------------------------------------------------------------
    def worker(self, seats: int = 10) -> Process:
        """A worker process."""
        return self.start("runworker", "--concurrency", str(seats))

    def scheduler(self) -> Process:
        """A scheduler process."""
        return self.start("runscheduler")

    def start(self, *command: str, host: Host | None = None, url: str = "") -> Process:
        """A command of manage.py, or gunicorn, as a process; on another host, by an address from there."""
        place = Place(url or self.url, host.path if host else "")
        return self._processes.enter_context(Process(self._proof, self._guard, command, place))

    def close(self) -> None:
        """Kill what still runs."""
        self._processes.close()
        self.forget_session()
        drop_connection()

    # -- the database ------------------------------------------------------------------------------------------
    @property
    def session(self) -> psycopg.Connection[Any]:
        """A session of the proof's own, in autocommit."""
        if self._session is None:
            self._session = psycopg.connect(self.url, autocommit=True)
            self._session.execute(SINK)
        return self._session

    def forget_session(self) -> None:
        """Close it; the next question opens another."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def move_to(self, url: str) -> None:
        """Play in another database: all that is done, and the processes that are started, from now on."""
        self.forget_session()
        self.url = url
        use_database(url)
        self.__dict__.pop("project", None)

    def rows(self, statement: str, *params: object) -> list[tuple[Any, ...]]:
        """What a query finds."""
        return self.session.execute(statement.encode(), params or None).fetchall()

    def value(self, statement: str, *params: object) -> Any:
        """The first value that a query finds."""
        rows = self.rows(statement, *params)
        return rows[0][0] if rows else None

    def do(self, statement: str, *params: object) -> None:
        """Change something by hand, as only a proof may."""
        self.session.execute(statement.encode(), params or None)

    # -- things ------------------------------------------------------------------------------------------------
    @cached_property
    def project(self) -> Project:
        """A project."""
        organization = Organization.objects.create(name="Proof", slug="proof")
        return Project.objects.create(organization=organization, name="Proof", slug="proof")

    def queue(self, name: str = "work", *, lease_s: int = 3, project: Project | None = None, **fields: Any) -> Queue:
        """A queue."""
        _ = self.session  # with it comes the sink
        project = project or self.project
        return Queue.objects.create(project=project, name=name, visibility_timeout_secs=lease_s, **fields)

    def submit(self, queue: Queue, count: int, job_type: str = "prove.effect", **fields: Any) -> list[Submitted]:
        """So many equal jobs; of many attempts, since a worker may be killed over each."""
        job = NewJob(job_type=job_type, **{"payload": {}, "max_attempts": 100, **fields})
        made: list[Submitted] = []
        while len(made) < count:
            made += submit_jobs(queue, [job] * min(AT_ONCE, count - len(made)))
        return made

    # -- waiting -----------------------------------------------------------------------------------------------
    def until(self, condition: Callable[[], T], limit_s: float, what: str, *, every_s: float = 0.02) -> T:
        """Wait for a condition; its first truthy value.

        Raises:
            NotReached: saying what did not happen.
        """
        deadline = time.monotonic() + limit_s
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise NotReached(f"{what}: not within {limit_s:g} s")
            time.sleep(every_s)
        return value

    def until_count(self, count: Callable[[], int], wanted: int, limit_s: float) -> None:
        """Give a count the time to reach what is wanted; whether it did is for the bars to say."""
        with contextlib.suppress(NotReached):
            self.until(lambda: count() >= wanted, limit_s, "")

    def until_value(self, statement: str, *params: object, more_than: int, what: str, limit_s: float = 60) -> None:
        """Wait until a number that a query finds is higher than one."""
        self.until(lambda: self.value(statement, *params) > more_than, limit_s, what, every_s=0.01)

    def until_all_ended(self, what: str = "all jobs end", *, stall_s: float = 40.0, every_s: float = 0.1) -> None:
        """Wait until no job is left to be worked on.

        Raises:
            NotReached: none of them has ended for ``stall_s``; says how many are left.
        """
        least, moved_at, told_at = -1, time.monotonic(), time.monotonic()
        while left := self.value("select count(*) from jobs where completed_at is null"):
            now = time.monotonic()
            if left < least or least < 0:
                least, moved_at = left, now
            if now - moved_at > stall_s:
                raise NotReached(f"{what}: {left} jobs are left, and none has ended for {stall_s:g} s")
            if now - told_at > 2:
                told_at = now
                self.say(f"{left:,} jobs are left")
            time.sleep(every_s)

    def until_ready(self, processes: int) -> None:
        """Wait until so many workers have registered."""
        self.until(lambda: self.value("select count(*) from workers") >= processes, 60, "the workers start")


@contextlib.contextmanager
def closing(stage: Stage) -> Iterator[Stage]:
    """Close the stage at the end."""
    try:
        yield stage
    finally:
        stage.close()
