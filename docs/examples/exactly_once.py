"""Exactly once on the same database, with a worker that is killed in the middle of its work.

Needs a database that is migrated and running, such as that of ``make demo``:

    python docs/examples/exactly_once.py
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
if __name__ == "__main__":  # as a program; a worker that reads this module has done all that
    import django

    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    django.setup()

from django.db import connection, transaction

from jobs.handlers import JobContext, handler
from jobs.lease import assert_lease

JOBS = 40


# -- the handlers: what you would write into yourapp/handlers.py ----------------------------------------------------
def write_booking(order: int, step: int) -> None:
    """The effect; yours would be a model's."""
    with connection.cursor() as cursor:
        cursor.execute("insert into example_bookings (order_number, step) values (%s, %s)", [order, step])


def steps_done(order: int) -> int:
    """How many steps of an order are committed."""
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from example_bookings where order_number = %s", [order])
        return int(cursor.fetchone()[0])


@handler("example.book", transactional=True)
def book(ctx: JobContext) -> None:
    """What it writes and the end of its job are one transaction: both are there, or neither."""
    write_booking(ctx.payload["order"], 1)
    time.sleep(0.2)  # killed here, it has written nothing


@handler("example.book_in_steps")
def book_in_steps(ctx: JobContext) -> None:
    """Several transactions. Each asks for the lease before it commits, and what is committed says where to go on."""
    for step in range(steps_done(ctx.payload["order"]) + 1, 4):
        with transaction.atomic():
            write_booking(ctx.payload["order"], step)
            time.sleep(0.05)
            assert_lease(ctx)


# -- the demonstration ---------------------------------------------------------------------------------------------
@contextlib.contextmanager
def command(*args: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of manage.py that knows the handlers above."""
    env = {**os.environ, "APP_HANDLER_MODULES": "docs.examples.exactly_once", "APP_WORKER_HEARTBEAT_INTERVAL_SECS": "1"}
    env |= {"APP_SCHEDULER_LEASE_REAPER_INTERVAL_SECS": "1", "APP_LOG_LEVEL": "warning"}
    with subprocess.Popen([sys.executable, "manage.py", *args], cwd=ROOT, env=env) as process:
        try:
            yield process
        finally:
            process.terminate()


def wait_until(condition: Callable[[], bool]) -> None:
    """Look until it is so."""
    until = time.monotonic() + 240
    while not condition():
        if time.monotonic() > until:
            raise SystemExit("this took too long: is the database running?")
        time.sleep(0.05)


def main() -> None:
    """Submit, kill, and count."""
    from jobs.lifecycle.submit import NewJob, submit_jobs
    from jobs.models import Job
    from orgs.models import Organization, Project
    from queues.models import Queue

    organization, _ = Organization.objects.get_or_create(slug="example", defaults={"name": "Example"})
    project, _ = Project.objects.get_or_create(organization=organization, slug="example", defaults={"name": "Example"})
    queue, _ = Queue.objects.get_or_create(project=project, name="bookings", defaults={"visibility_timeout_secs": 2})
    with connection.cursor() as cursor:
        cursor.execute("create table if not exists example_bookings (order_number int, step int)")
        cursor.execute("truncate example_bookings")
    whole = submit_jobs(queue, [NewJob(job_type="example.book", payload={"order": n}) for n in range(JOBS)])
    steps = submit_jobs(
        queue, [NewJob(job_type="example.book_in_steps", payload={"order": -n}) for n in range(1, JOBS)]
    )
    jobs = Job.objects.filter(pk__in=[job.id for job in (*whole, *steps)])
    worker = ("runworker", "--queues", "example/example/bookings", "--concurrency", "4")

    with command("runscheduler"), command(*worker) as first:
        wait_until(lambda: jobs.filter(status="completed").count() >= JOBS // 4)
        first.kill()
        print(f"killed a worker; {jobs.filter(status='completed').count()} of {jobs.count()} jobs were completed")
        with command(*worker):
            wait_until(lambda: not jobs.exclude(status="completed").exists())

    with connection.cursor() as cursor:
        cursor.execute("select count(*), count(distinct (order_number, step)) from example_bookings")
        effects, different = cursor.fetchone()
    again = jobs.filter(attempt_count__gt=1).count()
    wanted = JOBS + 3 * (JOBS - 1)
    print(f"{again} jobs had a second attempt; {effects} effects, {effects - different} duplicates, {wanted} wanted")
    raise SystemExit(0 if effects == different == wanted else 1)


if __name__ == "__main__":
    main()
