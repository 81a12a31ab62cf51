"""The statements of the hot path use the index they are made for, on a table with a past."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django import DjangoDbBlocker

from jobs import sql
from jobs.decisions import Failed, Succeeded
from jobs.lease import Ending, Lease
from jobs.lifecycle import exchange
from jobs.lifecycle.claim import Claim, Want, claim_calls
from jobs.lifecycle.exchange import Handover, LogLine, Progress
from jobs.lifecycle.settle import settle_calls
from jobs.lifecycle.start import start_call
from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib.sql import run_together
from scheduler_project.lib.statements import Call, plain_array
from tests import distributed
from tests.factories import ANY_TYPE, claim_from, make_organization, make_project, make_queue
from tests.sizes import PLAN_ROWS

pytestmark = [pytest.mark.django_db, distributed.plain_plans]

#: Mostly a past, some waiting, few in flight.
PAST, QUEUED, SCHEDULED, DUE, KEYED = (PLAN_ROWS * percent // 100 for percent in (75, 10, 5, 2, 3))
IN_FLIGHT = 200
FILL = """
insert into jobs (id, project_id, queue_id, job_type, payload, priority, status, run_at, trace_id, is_blocked,
                  has_dependants, idempotency_key, created_at, updated_at, completed_at)
select (lpad(to_hex(%(first)s + n), 12, '0') || '7000' || substr(md5(n::text), 1, 16))::uuid, %(project)s,
       (%(queues)s::uuid[])[1 + n %% cardinality(%(queues)s::uuid[])], 'noop', to_jsonb(repeat('x', 300)),
       n %% 3, %(status)s, now() + make_interval(secs => n + %(shift_s)s), '', false, false,
       case when %(keyed)s then 'key-' || n end, now(), now(),
       case when %(status)s in ('completed', 'failed', 'dead_letter', 'cancelled') then now() end
  from generate_series(1, %(count)s) as n
"""
LEASED = ["start", "settle", "progress", "log_lines", "extend_leases", "cancel", "requeue", "hold", "retry_rules"]
INDEXES = {
    "claim": ["jobs_ready", "jobs_in_flight"],
    "ready_queues": ["jobs_ready", "jobs_in_flight"],
    "promote": ["jobs_due"],
    "due_next": ["jobs_due"],
    "expired": ["jobs_in_flight"],
    "claimed_unknown": ["jobs_in_flight"],
    "extend_leases_of_worker": ["jobs_in_flight"],
    "retire_workers": ["jobs_in_flight"],
    "first_jobs_of_keys": ["jobs_idempotency_key"],
    **{name: ["jobs_pkey"] for name in LEASED},
}


@pytest.fixture(scope="module")
def plans(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> dict[str, str]:
    """The plan of each statement; the rows they were made for are gone again."""
    with django_db_blocker.unblock(), transaction.atomic():
        queues = fill()
        leases = [lease for queue in queues for lease in claim_from(queue, IN_FLIGHT // len(queues))]
        found = {name: explain(call) for name, call in statements(queues, leases).items()}
        keys = [f"key-{n}" for n in range(1, 50)]
        found["first_jobs_of_keys"] = Job.objects.filter(
            project_id=queues[0].project_id, queue=queues[0], idempotency_key__in=keys
        ).explain()
        found["retry_rules"] = Job.objects.filter(id__in=[lease.job_id for lease in leases[:100]]).explain()
        transaction.set_rollback(True)
    return found


def fill() -> list[Queue]:
    """Queues full of jobs, and a table of jobs that was analyzed."""
    project = make_project(make_organization())
    queues = [make_queue(project, max_concurrency=None if n % 2 else 500) for n in range(10)]
    wanted: dict[str, Any] = {
        "project": project.pk,
        "queues": [queue.pk for queue in queues],
        "keyed": False,
        "first": 0,
    }
    with connection.cursor() as cursor:
        for status, count, shift_s in (
            ("completed", PAST, -1_000_000),
            ("failed", PAST // 20, -1_000_000),
            ("queued", QUEUED, -9_000),
            ("scheduled", SCHEDULED, 60),
            ("scheduled", DUE, -9_000),
        ):
            wanted["first"] += 100_000_000
            cursor.execute(FILL, {**wanted, "status": status, "count": count, "shift_s": shift_s})
        wanted["first"] += 100_000_000
        cursor.execute(FILL, {**wanted, "status": "completed", "count": KEYED, "shift_s": -9, "keyed": True})
        cursor.execute("analyze jobs, queues")
    return queues


def statements(queues: list[Queue], leases: list[Lease]) -> dict[str, Call]:
    """Each statement with the parameters of a busy worker or scheduler."""
    hundred = leases[:100]
    ids = [lease.job_id for lease in hundred]
    worker_id = str(queues[0].pk)
    endings = [
        Ending.of(lease, Failed("x") if n % 2 else Succeeded(), worker_id, 1.0) for n, lease in enumerate(hundred)
    ]
    wants = [Want(str(queue.pk), 25) for queue in queues[:4]]
    open_queues, claim = claim_calls(Claim(worker_id, wants, ANY_TYPE, 50))
    run_together([open_queues])
    handover = Handover(
        lines=[LogLine(lease.job_id, lease.token, 0.0, "info", "x") for lease in hundred],
        progress=[Progress(lease.job_id, lease.token, 1, None) for lease in hundred],
    )
    held = {"ids": plain_array(ids), "tokens": plain_array([lease.token for lease in hundred])}
    batch = {"limit": 500, "skip": [], "only": None}
    types = {"types": ANY_TYPE.names, "patterns": ANY_TYPE.patterns}
    known = plain_array([lease.token for lease in leases])
    return {
        "claim": claim,
        "ready_queues": Call(sql.READY_QUEUES, {"queue_ids": None, "sure": "{}", **types}),
        "promote": Call(sql.PROMOTE, batch),
        "due_next": Call(sql.DUE_NEXT, {"just_s": 0.1}),
        "expired": Call(sql.EXPIRED, batch),
        "claimed_unknown": Call(sql.CLAIMED_UNKNOWN, {"worker_id": worker_id, "known": known, "settled_s": 0.0}),
        "extend_leases": Call(sql.EXTEND_LEASES, {**held, "leases_s": plain_array([60] * 100)}),
        "extend_leases_of_worker": Call(sql.EXTEND_LEASES_OF_WORKER, {"worker_id": worker_id}),
        "retire_workers": Call(sql.RETIRE_WORKERS, {"silent_s": 30.0}),
        "start": start_call(hundred),
        "settle": settle_calls(endings)[0],
        "progress": exchange._progress_call(handover.progress),
        "log_lines": exchange.lines_call(handover.lines, 0.0),
        "hold": Call(sql.HOLD, {"ids": plain_array(ids)}),
        "cancel": Call(sql.CANCEL, {"ids": ids, "reason": "x"}),
        "requeue": Call(sql.REQUEUE, {"ids": ids, "blocked": []}),
    }


def explain(call: Call) -> str:
    with connection.cursor() as cursor:
        cursor.execute("explain " + cursor.mogrify(call.statement.text, call.params))
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.mark.parametrize("name", sorted(INDEXES))
def test_a_statement_of_the_hot_path_uses_its_index_and_never_reads_the_whole_table(
    plans: dict[str, str], name: str
) -> None:
    plan = plans[name]

    assert "Seq Scan on jobs" not in plan, plan
    for index in INDEXES[name]:
        assert index in plan, plan


def test_every_plan_is_looked_at(plans: dict[str, str]) -> None:
    assert set(plans) == set(INDEXES)


def test_a_claim_reads_no_more_of_a_queue_than_it_takes(plans: dict[str, str]) -> None:
    """The index gives the order: nothing is sorted before the limit."""
    before_the_limit = plans["claim"].split("Limit")[1].split("SubPlan")[0]

    assert "Sort" not in before_the_limit


def test_a_claim_never_reads_the_whole_table_however_much_of_it_waits() -> None:
    """How many seats are wanted is not known to the planner: it expects a tenth of what waits, a large part here."""
    queue = make_queue(make_project(make_organization()))
    waiting: dict[str, Any] = {
        "project": queue.project_id,
        "queues": [queue.pk],
        "keyed": False,
        "first": 0,
        "shift_s": -99_000,
    }
    with connection.cursor() as cursor:
        cursor.execute(FILL, {**waiting, "status": "queued", "count": 20_000})
        cursor.execute("analyze jobs")
    open_queues, claim = claim_calls(Claim(str(queue.pk), [Want(str(queue.pk), 100)], ANY_TYPE, 0))

    run_together([open_queues])

    assert "Seq Scan on jobs" not in explain(claim)
