"""What the measures share: a scratch database with queues full of jobs, and workers that drain them."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import psycopg

from scheduler_project.lib.ids import NEW_ID
from scheduler_project.lib.scratch import Scratch

Say = Callable[[str], None]

TENANT = """
insert into organizations (id, name, slug) values (gen_random_uuid(), 'bench', 'bench');
insert into projects (id, organization_id, name, slug, updated_at)
  select gen_random_uuid(), id, 'bench', 'bench', now() from organizations;
"""
QUEUE = """
insert into queues (id, project_id, name, priority, is_paused, paused_reason, visibility_timeout_secs, updated_at,
                    max_concurrency)
select gen_random_uuid(), id, %s, 0, false, '', 60, now(), %s from projects returning id
"""
FILL = f"""
insert into jobs (id, project_id, queue_id, job_type, payload, status, run_at, batch_id, completed_at)
select {NEW_ID}, queue.project_id, queue.id, %(job_type)s, '{{}}', %(status)s::text,
       clock_timestamp() + %(ahead_s)s * interval '1 second', %(batch)s::uuid,
       case when %(status)s::text = 'completed' then clock_timestamp() end
  from queues as queue, generate_series(1, %(count)s)
 where queue.id = any(%(queues)s)
"""  # noqa: S608 - a constant
PLAIN: dict[str, Any] = {"job_type": "noop", "batch": None, "status": "queued", "ahead_s": 0.0}
RELEASE = "update queues set is_paused = false where id = any(%s) returning clock_timestamp()"
IS_LEFT = """
select exists (select from jobs where queue_id = any(%(queues)s) and status in ('claimed', 'running'))
    or exists (select from jobs where queue_id = any(%(queues)s) and status = 'queued')
"""
TOOK = """
select extract(epoch from max(finished_at) - %s)::float8
  from job_executions where finished_at >= %s
"""
#: A look at what is left costs the server something: not often, and the end is read from the history.
LOOK_EVERY_S = 0.25


def prepare(scratch: Scratch) -> None:
    """An organization and a project for the benchmark's queues."""
    with scratch.connect() as session:
        session.execute(TENANT.encode())


def make_queue(session: psycopg.Connection[Any], name: str, limit: int | None = None) -> Any:
    """A queue; its id."""
    row = session.execute(QUEUE, [name, limit]).fetchone()
    assert row is not None  # noqa: S101 - an insert with returning
    return row[0]


def fill(scratch: Scratch, queue_id: Any, count: int, **kind: Any) -> None:
    """``count`` jobs for a queue, or for each of a list of queues; as if they had just been submitted.

    Args:
        kind: what differs from ``PLAIN``.
    """
    queues = queue_id if isinstance(queue_id, list) else [queue_id]
    with scratch.connect() as session:
        session.execute(FILL, {**PLAIN, **kind, "queues": queues, "count": count})
        session.execute("vacuum analyze jobs")


@contextlib.contextmanager
def workers(scratch: Scratch, count: int, *args: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Worker processes that have registered and wait for work."""
    before = scratch.value("select count(*) from workers")
    processes = [scratch.start("runworker", *args) for _ in range(count)]
    try:
        while scratch.value("select count(*) from workers") < before + count:
            time.sleep(0.02)
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(30)


def pause(scratch: Scratch, queue_id: Any) -> None:
    """Nothing is claimed from the queue until a drain begins."""
    with scratch.connect() as session:
        session.execute("update queues set is_paused = true where id = %s", [queue_id])


@dataclass(frozen=True, slots=True)
class Drain:
    """A drain that is over: ``rate`` in jobs a second, processor time in microseconds a job."""

    rate: float
    worker_us: float
    server_us: float


def drain_rate(scratch: Scratch, queue_id: Any, count: int, *, processes: int = 1, job_type: str = "noop") -> float:
    """Jobs a second, for ``count`` jobs that are made first."""
    pause(scratch, queue_id)
    fill(scratch, queue_id, count, job_type=job_type)
    return drain_of(scratch, [queue_id], count, processes).rate


def drain_of(scratch: Scratch, queues: list[Any], count: int, processes: int = 1) -> Drain:
    """Release queues that are paused and full, ``count`` jobs in all, and watch them being worked off."""
    with workers(scratch, processes, "--concurrency", "100") as started, scratch.connect() as session:
        pids = [process.pid for process in started]
        before = cpu_s(pids), cpu_s(backends(session))
        row = session.execute(RELEASE, [queues]).fetchone()
        for queue_id in queues[:100]:
            session.execute("select pg_notify('punctual', 'work ' || %s)", [str(queue_id)])
        while (left := session.execute(IS_LEFT, {"queues": queues}).fetchone()) and left[0]:
            time.sleep(LOOK_EVERY_S)
        used = cpu_s(pids) - before[0], cpu_s(backends(session)) - before[1]
        began = row[0] if row else None
        took = session.execute(TOOK, [began, began]).fetchone()
    seconds = float(took[0]) if took else 0.0
    return Drain(count / seconds, used[0] / count * 1e6, used[1] / count * 1e6)


def in_turns(rounds: int, *ways: Callable[[], float]) -> list[float]:
    """The median of what each way measures; they take turns, so that what disturbs the machine disturbs each."""
    found: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for values, way in zip(found, ways, strict=True):
            values.append(way())
    return [statistics.median(values) for values in found]


def backends(session: psycopg.Connection[Any]) -> list[int]:
    """The processes of the other sessions in this database: where the server is on this machine."""
    rows = session.execute(
        "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    ).fetchall()
    return [row[0] for row in rows]


def cpu_s(pids: list[int]) -> float:
    """Processor seconds of processes, as far as they can be seen; a worker's helpers are not the path of a job."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            total += times.user + times.system
    return total
