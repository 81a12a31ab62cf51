"""Schedules, graphs and batches with real processes: in time, once, and in order."""

from __future__ import annotations

import random
import statistics
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection

from jobs.lifecycle.graph import After, Node, submit_graph
from jobs.lifecycle.submit import NewJob
from jobs.models import Job, JobBatch, LeaderTerm, ScheduledJob, ScheduleFire
from jobs.services.batches import add_jobs, close_batch, create_batch
from jobs.services.schedules import create_schedule
from queues.models import Queue
from scheduler_project.lib.sql import database_now
from tests.factories import make_queue
from tests.process.test_storm import storm
from tests.processes import scheduler, worker
from tests.sizes import long, proved_by, size
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

GRAPHS, DIAMONDS = size("GRAPHS", suite=40, full=2_000), size("DIAMONDS", suite=60, full=200)
#: Single moments that are waited for; 200 and more make a 99th percentile.
MOMENTS = size("MOMENTS", suite=20, full=200)


def test_single_moments_start_in_time_on_an_idle_system(committed_queue: Queue) -> None:
    # Polls are far apart: what is in time is so by the clock and by hint.
    env = {"APP_SCHEDULER_POLL_INTERVAL_MS": "2000", "APP_WORKER_POLL_INTERVAL_MS": "1000"}
    with scheduler(env=env), worker(env=env) as process:
        wait_until(lambda: process.events("worker_started") and LeaderTerm.objects.exists())
        began = database_now()
        for n in range(MOMENTS):
            create_schedule(
                committed_queue,
                name=f"once {n}",
                run_once_at=began + timedelta(seconds=1.5, milliseconds=150 * n),
                job_type="effect",
            )
        wait_until(lambda: Job.objects.filter(status="completed").count() == MOMENTS, timeout_s=20 + 0.2 * MOMENTS)

    with connection.cursor() as cursor:
        cursor.execute(
            "select extract(epoch from effect.at - fire.due_at) * 1000 from test_effects effect"
            " join schedule_fires fire on fire.job_id = effect.job_id where effect.kind = 'start'"
        )
        late = sorted(float(row[0]) for row in cursor.fetchall())
    p99 = late[int(0.99 * (len(late) - 1))]
    print(
        f"\ndue to start, {MOMENTS} moments: median {statistics.median(late):.0f} ms, p99 {p99:.0f} ms,"
        f" worst {late[-1]:.0f} ms"
    )
    assert late[0] >= 0
    assert statistics.median(late) < 500


def test_every_due_time_fires_once_while_the_leaders_sessions_are_ended(committed_queue: Queue) -> None:
    schedule = create_schedule(committed_queue, name="often", cron_expression="* * * * *", job_type="noop")
    start = database_now().replace(second=0, microsecond=0) - timedelta(minutes=30)
    with scheduler(), scheduler():
        for n in range(10):
            # Two due times at once, as if two minutes had passed.
            first = start + timedelta(minutes=2 * n)
            ScheduledJob.objects.filter(pk=schedule.pk).update(
                next_run_at=first, ends_at=first + timedelta(minutes=1), misfire_grace_secs=86_400, is_active=True
            )
            with connection.cursor() as cursor:
                cursor.execute(
                    "select pg_terminate_backend(backend_pid) from leader_terms"
                    " where ended_at is null and backend_pid in (select pid from pg_stat_activity)"
                    " order by id desc limit 1"
                )
            wait_until(partial(has_fired, 2 * n + 2), timeout_s=60)  # how fast: test_leader

    fires = list(ScheduleFire.objects.order_by("due_at").values_list("due_at", "outcome"))
    assert fires == [(start + timedelta(minutes=n), "fired") for n in range(20)]
    assert Job.objects.count() == 20


def test_two_leaders_at_once_fire_nothing_twice(committed_queue: Queue) -> None:
    for n in range(10):
        create_schedule(
            committed_queue, name=f"s{n}", cron_expression="* * * * *", job_type="noop", misfire_grace_secs=10**8
        )
    start = database_now().replace(second=0, microsecond=0) - timedelta(minutes=200)
    # Two locks: both lead.
    with scheduler(), scheduler(env={"APP_SCHEDULER_ADVISORY_LOCK_ID": "43"}):
        wait_until(lambda: LeaderTerm.objects.values("pid").distinct().count() == 2, timeout_s=60)
        for n in range(15):
            first = start + timedelta(minutes=3 * n)
            ScheduledJob.objects.update(next_run_at=first, ends_at=first + timedelta(minutes=2), is_active=True)
            wait_until(partial(has_fired, 30 * (n + 1)), timeout_s=60)

    assert ScheduleFire.objects.filter(outcome="fired").count() == Job.objects.count() == 450


def test_children_get_what_their_parents_returned(committed_queue: Queue) -> None:
    made = submit_graph(
        [
            Node("a", committed_queue, NewJob(job_type="test.echo", payload=40)),
            Node("b", committed_queue, NewJob(job_type="test.echo", payload=2)),
            Node("sum", committed_queue, NewJob(job_type="sum"), [After("a"), After("b")]),
        ]
    )
    with worker():
        wait_until(lambda: Job.objects.filter(pk=made["sum"].id, status="completed").exists())

    assert Job.objects.get(pk=made["sum"].id).result == 42


def has_fired(times: int) -> bool:
    return ScheduleFire.objects.count() == times


def random_graph(rng: random.Random, queue: Queue) -> tuple[list[Node], dict[str, str]]:
    """Nodes, and the state in which a simple model says each ends."""
    size = rng.randint(2, 60)
    nodes: list[Node] = []
    expected: dict[str, str] = {}
    for i in range(size):
        parents = [
            After(f"n{p}", rng.choice(["cancel", "run"])) for p in rng.sample(range(i), rng.randint(0, min(i, 3)))
        ]
        fails = rng.random() < 0.1
        job = NewJob(job_type="failing" if fails else "sleep_20", max_attempts=1 if fails else 30)
        nodes.append(Node(f"n{i}", queue, job, parents))
        doomed = any(expected[p.ref] != "completed" and p.on_failure == "cancel" for p in parents)
        expected[f"n{i}"] = "cancelled" if doomed else "dead_letter" if fails else "completed"
    return nodes, expected


@long
@pytest.mark.timeout(600)
def test_random_graphs_end_as_a_simple_model_says_while_workers_are_killed(committed_queue: Queue) -> None:
    Queue.objects.update(visibility_timeout_secs=3)
    rng = random.Random(3)
    expected: dict[Any, str] = {}
    for _ in range(GRAPHS):
        nodes, model = random_graph(rng, committed_queue)
        made = submit_graph(nodes)
        expected.update({made[ref].id: status for ref, status in model.items()})

    with scheduler(), storm(worker, 3, 2.0) as weather:
        wait_until(lambda: not Job.objects.filter(completed_at=None).exists(), timeout_s=500)

    found = dict(Job.objects.values_list("id", "status"))
    wrong = {id_: (found[id_], status) for id_, status in expected.items() if found[id_] != status}
    # A kill may cost the one attempt of a job that was meant to fail anyway; it is dead either way.
    print(f"\n{GRAPHS} graphs, {len(expected)} jobs, {weather.kills} kills, {len(wrong)} differ from the model")
    assert wrong == {}


@proved_by("batch")
@pytest.mark.timeout(300)
def test_batch_counts_are_exact_and_its_callback_comes_once_while_a_worker_is_killed(committed_queue: Queue) -> None:
    Queue.objects.update(visibility_timeout_secs=3)
    callbacks = make_queue(committed_queue.project)
    batch = create_batch(
        committed_queue.project_id,
        "mixed",
        callbacks={"on_end": {"queue_id": str(callbacks.pk), "job_type": "test.echo"}},
    )
    add_jobs(batch.pk, committed_queue, [NewJob(job_type="noop", max_attempts=30)] * 80)
    twice = NewJob(job_type="failing", payload={"succeed_on_attempt": 2}, max_attempts=30)
    add_jobs(batch.pk, committed_queue, [twice] * 10)
    add_jobs(batch.pk, committed_queue, [NewJob(job_type="failing", max_attempts=1)] * 10)
    close_batch(batch.pk)

    with scheduler(), storm(worker, 2, 1.5):
        wait_until(lambda: JobBatch.objects.filter(pk=batch.pk, ended_at__isnull=False).exists(), timeout_s=120)
        wait_until(lambda: Job.objects.filter(queue=callbacks, status="completed").exists(), timeout_s=60)

    batch.refresh_from_db()
    assert (batch.total_jobs, batch.completed_jobs, batch.failed_jobs) == (100, 90, 10)
    assert Job.objects.filter(queue=callbacks).count() == 1


def test_join_of_a_diamond_starts_once_after_both_branches(committed_queue: Queue) -> None:
    for _ in range(DIAMONDS):
        job = NewJob(job_type="effect")
        submit_graph(
            [
                Node("a", committed_queue, job),
                Node("b", committed_queue, job, [After("a")]),
                Node("c", committed_queue, job, [After("a")]),
                Node("d", committed_queue, job, [After("b"), After("c")]),
            ]
        )
    with worker(), worker(), worker():
        wait_until(lambda: Job.objects.filter(status="completed").count() == 4 * DIAMONDS, timeout_s=60)

    with connection.cursor() as cursor:
        cursor.execute("select count(*), count(distinct job_id) from test_effects where kind = 'start'")
        assert cursor.fetchone() == (4 * DIAMONDS, 4 * DIAMONDS)
        cursor.execute(
            "select count(*) from job_dependencies edge"
            " join test_effects child on child.job_id = edge.job_id and child.kind = 'start'"
            " join test_effects parent on parent.job_id = edge.depends_on_job_id and parent.kind = 'end'"
            " where child.at < parent.at"
        )
        assert cursor.fetchone()[0] == 0
