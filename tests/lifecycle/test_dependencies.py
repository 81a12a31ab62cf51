"""Jobs that wait for others: released once, cancelled with the reason, under every race."""

from __future__ import annotations

import random
import threading
from uuid import UUID

import pytest
from django.db import connection

from dlq.models import DeadLetter
from dlq.services import discard
from jobs.decisions import Discarded, Failed, Succeeded, Verdict
from jobs.lease import Ending
from jobs.lifecycle.cancel import cancel_from, cancel_job
from jobs.lifecycle.graph import After, Node, submit_graph
from jobs.lifecycle.requeue import requeue_from, requeue_job
from jobs.lifecycle.settle import settle
from jobs.lifecycle.submit import NewJob, Parent, submit_job
from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib.errors import ValidationFailed
from tests.factories import claim_from, claim_one, make_job, make_queue


def status_of(job_id: UUID) -> tuple[str, bool]:
    return Job.objects.values_list("status", "is_blocked").get(pk=job_id)


def end(queue: Queue, verdict: Verdict) -> None:
    """Claim the next job and end it so."""
    lease = claim_one(queue)
    settle([Ending.of(lease, verdict, lease.job_id, 1.0)])


@pytest.mark.django_db
def test_child_waits_until_its_last_parent_has_completed(queue: Queue) -> None:
    first, second = make_job(queue), make_job(queue)
    child = submit_job(queue, NewJob(job_type="noop", depends_on=[Parent(first.pk), Parent(second.pk)])).id
    assert status_of(child) == ("scheduled", True)

    end(queue, Succeeded())
    assert status_of(child) == ("scheduled", True)
    end(queue, Succeeded())

    assert status_of(child) == ("queued", False)


@pytest.mark.django_db
def test_child_of_a_completed_job_is_queued_at_once(queue: Queue) -> None:
    parent = make_job(queue)
    end(queue, Succeeded())

    child = submit_job(queue, NewJob(job_type="noop", depends_on=[Parent(parent.pk)])).id

    assert status_of(child) == ("queued", False)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("on_failure", "expected"),
    [("cancel", ("cancelled", False)), ("run", ("queued", False)), ("wait", ("scheduled", True))],
)
def test_failed_parent_does_to_its_child_what_the_edge_says(
    queue: Queue, on_failure: str, expected: tuple[str, bool]
) -> None:
    parent = make_job(queue)
    before = submit_job(queue, NewJob(job_type="noop", depends_on=[Parent(parent.pk, on_failure)])).id  # type: ignore[arg-type]

    end(queue, Discarded("no"))
    after = submit_job(queue, NewJob(job_type="noop", depends_on=[Parent(parent.pk, on_failure)])).id  # type: ignore[arg-type]

    assert status_of(before) == expected
    assert status_of(after) == expected
    if on_failure == "cancel":
        assert str(parent.pk) in (Job.objects.get(pk=before).error_message or "")


@pytest.mark.django_db
def test_waiting_child_is_released_when_its_parent_completes_after_a_retry(queue: Queue) -> None:
    parent = make_job(queue)
    child = submit_job(queue, NewJob(job_type="noop", depends_on=[Parent(parent.pk, "wait")])).id
    end(queue, Discarded("no"))

    requeue_job(parent.pk, by=None)
    end(queue, Succeeded())

    assert status_of(child) == ("queued", False)


@pytest.mark.django_db
def test_failure_between_two_attempts_is_no_end(queue: Queue) -> None:
    parent = make_job(queue, max_attempts=2)
    child = submit_job(queue, NewJob(job_type="noop", depends_on=[Parent(parent.pk)])).id

    end(queue, Failed("once"))

    assert status_of(child) == ("scheduled", True)


@pytest.mark.django_db
def test_cancelling_a_waiting_parent_cancels_the_whole_chain(queue: Queue) -> None:
    refs = [f"n{i}" for i in range(30)]
    nodes = [Node(ref, queue, NewJob(job_type="noop"), [After(refs[i - 1])] if i else []) for i, ref in enumerate(refs)]
    made = submit_graph(nodes)

    cancel_job(made["n0"].id, reason="stop")

    assert set(Job.objects.values_list("status", flat=True)) == {"cancelled"}


@pytest.mark.django_db
def test_delayed_child_is_scheduled_when_released_before_its_time(queue: Queue) -> None:
    parent = make_job(queue)
    child = submit_job(queue, NewJob(job_type="noop", delay_s=3600, depends_on=[Parent(parent.pk)])).id

    end(queue, Succeeded())

    assert status_of(child) == ("scheduled", False)


@pytest.mark.django_db
def test_parent_of_another_project_does_not_exist(queue: Queue) -> None:
    stranger = make_job(make_queue())

    with pytest.raises(ValidationFailed) as caught:
        submit_job(queue, NewJob(job_type="noop", depends_on=[Parent(stranger.pk)]))

    assert caught.value.details[0].field == "depends_on[0]"


@pytest.mark.django_db
def test_cycle_is_refused_with_its_members_and_nothing_is_stored(queue: Queue) -> None:
    job = NewJob(job_type="noop")
    nodes = [
        Node("start", queue, job),
        Node("a", queue, job, [After("start"), After("c")]),
        Node("b", queue, job, [After("a")]),
        Node("c", queue, job, [After("b")]),
    ]

    with pytest.raises(ValidationFailed, match="a → c → b → a"):
        submit_graph(nodes)

    assert not Job.objects.exists()


@pytest.mark.django_db
def test_retry_from_a_node_runs_it_and_all_downstream_again_in_order(queue: Queue) -> None:
    job = NewJob(job_type="noop")
    made = submit_graph(
        [
            Node("a", queue, job),
            Node("b", queue, job, [After("a")]),
            Node("c", queue, job, [After("b")]),
            Node("side", queue, job, [After("a")]),
        ]
    )
    end(queue, Succeeded())
    settle([Ending.of(lease, Discarded("no"), lease.job_id, 1.0) for lease in claim_from(queue, 5)])
    assert [status_of(made[ref].id)[0] for ref in ("a", "b", "c", "side")] == [
        "completed",
        "failed",
        "cancelled",
        "failed",
    ]

    assert requeue_from(made["b"].id, by=None) == 2

    assert status_of(made["b"].id) == ("queued", False)
    assert status_of(made["c"].id) == ("scheduled", True)
    end(queue, Succeeded())
    assert status_of(made["c"].id) == ("queued", False)


@pytest.mark.django_db
def test_retry_from_a_node_leaves_what_somebody_discarded(queue: Queue) -> None:
    job = NewJob(job_type="noop", max_attempts=1)
    made = submit_graph([Node("a", queue, job), Node("b", queue, job, [After("a")])])
    end(queue, Succeeded())
    end(queue, Failed("no"))
    discard(DeadLetter.objects.get().pk, by=None)

    assert requeue_from(made["a"].id, by=None) == 1

    assert status_of(made["b"].id)[0] == "dead_letter"


@pytest.mark.django_db
def test_cancel_from_a_node_ends_all_downstream_whatever_the_edges_say(queue: Queue) -> None:
    job = NewJob(job_type="noop")
    made = submit_graph(
        [Node("a", queue, job), Node("b", queue, job, [After("a", "run")]), Node("c", queue, job, [After("b", "wait")])]
    )

    cancel_from(made["a"].id, reason="stop")

    assert set(Job.objects.values_list("status", flat=True)) == {"cancelled"}


@pytest.mark.django_db(transaction=True)
def test_two_last_parents_that_end_at_once_release_the_child_once(committed_queue: Queue) -> None:
    queue = committed_queue
    for _ in range(60):
        made = submit_graph(
            [
                Node("b", queue, NewJob(job_type="noop")),
                Node("c", queue, NewJob(job_type="noop")),
                Node("d", queue, NewJob(job_type="noop"), [After("b"), After("c")]),
            ]
        )
        leases = claim_from(queue, 2)
        barrier = threading.Barrier(2)

        def finish(index: int, leases: list = leases, barrier: threading.Barrier = barrier) -> None:  # type: ignore[type-arg]
            try:
                barrier.wait()
                settle([Ending.of(leases[index], Succeeded(), leases[index].job_id, 1.0)])
            finally:
                connection.close()

        threads = [threading.Thread(target=finish, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert status_of(made["d"].id) == ("queued", False)
        end(queue, Succeeded())


@pytest.mark.django_db(transaction=True)
def test_child_submitted_while_its_parent_ends_is_never_forgotten(committed_queue: Queue) -> None:
    queue = committed_queue
    for _ in range(60):
        parent = make_job(queue)
        lease = claim_one(queue)
        barrier = threading.Barrier(2)

        def finish(lease: object = lease, barrier: threading.Barrier = barrier) -> None:
            try:
                barrier.wait()
                settle([Ending.of(lease, Succeeded(), str(parent.pk), 1.0)])  # type: ignore[arg-type]  # noqa: B023
            finally:
                connection.close()

        thread = threading.Thread(target=finish)
        thread.start()
        barrier.wait()
        child = submit_job(queue, NewJob(job_type="noop", depends_on=[Parent(parent.pk)])).id
        thread.join()

        assert status_of(child) == ("queued", False)
        end(queue, Succeeded())


@pytest.mark.django_db
def test_random_graphs_end_as_a_simple_model_says(queue: Queue) -> None:
    rng = random.Random(5)
    for _ in range(25):
        size = rng.randint(2, 25)
        edges = {
            f"n{i}": [
                After(f"n{p}", rng.choice(["cancel", "run"])) for p in rng.sample(range(i), rng.randint(0, min(i, 3)))
            ]
            for i in range(size)
        }
        fate = {ref: rng.random() < 0.8 for ref in edges}
        made = submit_graph([Node(r, queue, NewJob(job_type="noop"), edges[r]) for r in edges])
        names = {str(s.id): ref for ref, s in made.items()}

        while leases := claim_from(queue, rng.randint(1, 5)):
            rng.shuffle(leases)
            for lease in leases:
                verdict: Verdict = Succeeded() if fate[names[lease.job_id]] else Discarded("drawn")
                settle([Ending.of(lease, verdict, lease.job_id, 1.0)])

        expected: dict[str, str] = {}
        for ref, parents in edges.items():
            doomed = any(expected[p.ref] != "completed" and p.on_failure == "cancel" for p in parents)
            expected[ref] = "cancelled" if doomed else "completed" if fate[ref] else "failed"
        found = {
            names[str(k)]: v
            for k, v in Job.objects.filter(pk__in=[s.id for s in made.values()]).values_list("id", "status")
        }
        assert found == expected
