"""Retention goes on beside the work: no long statement, no claim that waits."""

from __future__ import annotations

import signal
import time
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection

from jobs.decisions import Succeeded
from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, end, make_jobs, make_queue
from tests.processes import scheduler, worker
from tests.sizes import size
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

ENDED = size("RETENTION_JOBS", suite=20_000, full=200_000)


def count(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.fetchone()[0])


def claim_ms(queue: Queue) -> float:
    """How long a claim of one job took that nobody else is after."""
    make_jobs(queue, 1, "nobody.knows.it")
    began = time.perf_counter()
    [lease] = claim_from(queue, 1)
    took_ms = (time.perf_counter() - began) * 1_000
    end(lease, Succeeded())
    return took_ms


def p95(times: list[float]) -> float:
    return sorted(times)[int(0.95 * (len(times) - 1))]


@pytest.mark.timeout(240)
def test_old_jobs_are_archived_while_others_flow_and_the_run_stops_on_term(
    committed_queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = timedelta(days=40) // timedelta(milliseconds=1) << 80
    with monkeypatch.context() as patch:
        patch.setattr("jobs.lifecycle.submit.uuid7s", lambda n: [UUID(int=uuid7().int - past) for _ in range(n)])
        make_jobs(committed_queue, ENDED)
    with connection.cursor() as cursor:
        cursor.execute(
            "update jobs set status = 'completed', attempt_count = 1, created_at = now() - interval '40 days',"
            " completed_at = now() - interval '40 days'"
        )
    longest_statement = longest_wait = 0.0
    probe = make_queue(committed_queue.project)
    quiet = [claim_ms(probe) for _ in range(200)]
    busy: list[float] = []
    with worker():
        with scheduler() as first:
            wait_until(lambda: count("select count(*) from jobs_archive") > 0)
            first.send(signal.SIGTERM)
            assert first.wait(5) == 0, "it stops between two steps"
        with scheduler():
            while count("select count(*) from jobs_archive") < ENDED:
                make_jobs(committed_queue, 20)
                busy.append(claim_ms(probe))
                with connection.cursor() as cursor:
                    cursor.execute(
                        "select coalesce(max(extract(epoch from clock_timestamp() - query_start)), 0),"
                        " coalesce(max(extract(epoch from clock_timestamp() - query_start))"
                        "          filter (where wait_event_type = 'Lock'), 0)"
                        " from pg_stat_activity where datname = current_database() and state = 'active'"
                        " and pid <> pg_backend_pid()"
                    )
                    statement_s, wait_s = map(float, cursor.fetchone())
                longest_statement, longest_wait = max(longest_statement, statement_s), max(longest_wait, wait_s)
                time.sleep(0.05)  # the pace of the load
            wait_until(lambda: not Job.objects.exclude(status="completed").exists())

    print(f"\n{ENDED} archived; longest statement {longest_statement:.2f} s, longest lock wait {longest_wait:.2f} s")
    print(f"a claim's 95th percentile: quiet {p95(quiet):.1f} ms, beside the retention {p95(busy):.1f} ms")
    assert longest_statement < 2
    assert longest_wait < 0.5
    assert count("select count(*) from jobs where created_at < now() - interval '30 days'") == 0
