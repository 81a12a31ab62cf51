"""The measures: each runs in a scratch database and answers with figures, the important ones as ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from jobs.bench.ceiling import ceiling
from scheduler_project.lib.figures import Figure
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
FILL = """
insert into jobs (id, project_id, queue_id, job_type, payload, status, run_at, batch_id)
select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
        || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid,
       queue.project_id, queue.id, %s, '{}', 'queued', clock_timestamp(), %s
  from queues as queue, generate_series(1, %s)
 where queue.id = %s
"""
BATCH = """
insert into job_batches (id, project_id, name, total_jobs, completed_jobs, failed_jobs, status, updated_at)
select gen_random_uuid(), id, 'bench', 0, 0, 0, 'open', now() from projects returning id
"""


def prepare(scratch: Scratch) -> None:
    """An organization and a project for the benchmark's queues."""
    with scratch.connect() as session:
        session.execute(TENANT.encode())


def make_queue(session: psycopg.Connection[Any], name: str, limit: int | None = None) -> Any:
    """A queue; its id."""
    row = session.execute(QUEUE, [name, limit]).fetchone()
    assert row is not None  # noqa: S101 - an insert with returning
    return row[0]


def fill(scratch: Scratch, queue_id: Any, count: int, job_type: str = "noop", batch_id: Any = None) -> None:
    """Queued jobs, ready to be claimed."""
    with scratch.connect() as session:
        session.execute(FILL, [job_type, batch_id, count, queue_id])
        session.execute("vacuum analyze jobs")


@contextmanager
def workers(scratch: Scratch, count: int, *args: str) -> Iterator[None]:
    """Worker processes that have registered and wait for work."""
    before = scratch.value("select count(*) from workers")
    processes = [scratch.start("runworker", *args) for _ in range(count)]
    try:
        while scratch.value("select count(*) from workers") < before + count:
            time.sleep(0.02)
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(30)


def drain_rate(scratch: Scratch, queue_id: Any, count: int, *, processes: int = 1, job_type: str = "noop") -> float:
    """Jobs a second, for ``count`` jobs that are made first."""
    _pause(scratch, queue_id)
    fill(scratch, queue_id, count, job_type)
    return count / drain_s(scratch, queue_id, processes)


def drain_s(scratch: Scratch, queue_id: Any, processes: int) -> float:
    """Seconds from the release of a paused queue to the end of its last job."""
    left = "select count(*) from jobs where queue_id = %s and status in ('queued', 'claimed', 'running')"
    with workers(scratch, processes, "--concurrency", "100"), scratch.connect() as session:
        session.execute("update queues set is_paused = false where id = %s", [queue_id])
        began = time.monotonic()
        session.execute("select pg_notify('punctual', 'work ' || %s)", [str(queue_id)])
        while (row := session.execute(left, [queue_id]).fetchone()) and row[0]:
            time.sleep(0.02 if row[0] < 20_000 else 0.1)
        return time.monotonic() - began


def _pause(scratch: Scratch, queue_id: Any) -> None:
    with scratch.connect() as session:
        session.execute("update queues set is_paused = true where id = %s", [queue_id])


def drain(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """No-op jobs by one and two workers, against the ceiling of the same run."""
    figures = []
    with scratch.connect() as session:
        queue_id = make_queue(session, "drain")
    drain_rate(scratch, queue_id, min(jobs, 5_000))
    for processes, target in ((1, 0.6), (2, 0.55)):
        say(f"ceiling, {processes} client(s)")
        limit = ceiling(scratch.url, jobs=jobs, clients=processes)
        say(f"drain, {processes} worker process(es)")
        rate = drain_rate(scratch, queue_id, jobs, processes=processes)
        figures += [
            Figure(f"ceiling_{processes}", limit, "jobs/s"),
            Figure(f"drain_{processes}", rate, "jobs/s"),
            Figure(f"drain_{processes}_of_ceiling", rate / limit, "", target),
        ]
    say("drain, async handlers")
    figures.append(Figure("drain_async_1", drain_rate(scratch, queue_id, jobs, job_type="noop.async"), "jobs/s"))
    return figures


def limits(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """A queue limited to 100 against one without a limit."""
    with scratch.connect() as session:
        free, limited = make_queue(session, "free"), make_queue(session, "limited", 100)
    say("unlimited queue")
    without = drain_rate(scratch, free, jobs)
    say("queue limited to 100")
    with_limit = drain_rate(scratch, limited, jobs)
    return [
        Figure("drain_unlimited", without, "jobs/s"),
        Figure("drain_limited_100", with_limit, "jobs/s"),
        Figure("limited_of_unlimited", with_limit / without, "", 0.8),
    ]


def horizon(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """Drain while an old snapshot stays open, so that no dead entry of the index can be removed."""
    with scratch.connect() as session:
        queue_id = make_queue(session, "horizon")
    say("without an old snapshot")
    free = drain_rate(scratch, queue_id, jobs)
    with psycopg.connect(scratch.url) as old:
        old.execute("set transaction isolation level repeatable read")
        old.execute("select count(*) from queues")
        say("first drain under an old snapshot")
        drain_rate(scratch, queue_id, jobs)
        say("second drain under it, behind the first one's dead entries")
        held = drain_rate(scratch, queue_id, jobs)
        old.rollback()
    return [
        Figure("drain", free, "jobs/s"),
        Figure("drain_under_old_snapshot", held, "jobs/s"),
        Figure("old_snapshot_of_free", held / free, "", 0.8),
    ]


def backlog(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """The first jobs of a long line against a short line."""
    with scratch.connect() as session:
        short, long = make_queue(session, "short"), make_queue(session, "long")
    say("10,000 waiting")
    few = drain_rate(scratch, short, 10_000)
    say(f"{jobs:,} waiting: filling")
    _pause(scratch, long)
    fill(scratch, long, jobs)
    with scratch.connect() as session, workers(scratch, 1, "--concurrency", "100"):
        say(f"{jobs:,} waiting: draining for a while")
        session.execute("update queues set is_paused = false where id = %s", [long])
        done = "select count(*) from jobs where queue_id = %s and status = 'completed'"
        while not (row := session.execute(done, [long]).fetchone()) or row[0] < 5_000:
            time.sleep(0.02)
        began, first = time.monotonic(), row[0]
        time.sleep(5)
        row = session.execute(done, [long]).fetchone()
        many = ((row[0] if row else 0) - first) / (time.monotonic() - began)
    return [
        Figure("drain_10k_waiting", few, "jobs/s"),
        Figure(f"drain_{jobs}_waiting", many, "jobs/s"),
        Figure("long_of_short", many / few, "", 0.9),
    ]


def batch(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """The jobs of one batch against the same jobs without."""
    with scratch.connect() as session:
        plain, batched = make_queue(session, "plain"), make_queue(session, "batched")
        row = session.execute(BATCH).fetchone()
    scheduler = scratch.start("runscheduler")
    try:
        # The first drain of a database is the slowest, whatever it drains: not the one to compare with.
        drain_rate(scratch, plain, jobs, processes=4)
        say("without a batch, 4 workers")
        without = drain_rate(scratch, plain, jobs, processes=4)
        say("as one batch, 4 workers")
        _pause(scratch, batched)
        fill(scratch, batched, jobs, "noop", row[0] if row else None)
        with scratch.connect() as session:
            session.execute("update job_batches set status = 'running'")
        with_batch = jobs / drain_s(scratch, batched, 4)
        while scratch.value("select ended_at from job_batches") is None:
            time.sleep(0.05)
    finally:
        scheduler.terminate()
        scheduler.wait(30)
    counted = scratch.value("select completed_jobs from job_batches")
    return [
        Figure("drain_without_batch", without, "jobs/s"),
        Figure("drain_as_batch", with_batch, "jobs/s"),
        Figure("batch_of_plain", with_batch / without, "", 0.9),
        Figure("batch_counted", counted, "jobs", float(jobs)),
    ]


def latency(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """From the commit of a submission to the start of its handler, on an idle worker."""
    with scratch.connect() as session:
        queue_id = make_queue(session, "latency")
        with workers(scratch, 1):
            say(f"{jobs} single submissions to an idle worker")
            for _ in range(jobs):
                session.execute(FILL, ["noop", None, 1, queue_id])
                session.execute("select pg_notify('punctual', 'work ' || %s)", [str(queue_id)])
                time.sleep(0.06)
            while scratch.value("select count(*) from jobs where status <> 'completed'"):
                time.sleep(0.02)
        rows = session.execute(
            "select extract(epoch from e.started_at - j.run_at)::float8 * 1000"
            " from job_executions e join jobs j on j.id = e.job_id where j.queue_id = %s",
            [queue_id],
        ).fetchall()
    late = sorted(float(row[0]) for row in rows)
    return [
        Figure("pick_up_p50", statistics.median(late), "ms"),
        Figure("pick_up_p99", statistics.quantiles(late, n=100)[98], "ms"),
    ]
