"""Circuit breakers: when they open, what is claimed meanwhile, and how they close."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from jobs.decisions import Discarded, Failed, Interrupted, Snoozed, Succeeded, Verdict
from jobs.handlers.registry import circuit_of, handler
from jobs.lease import Lease
from jobs.lifecycle.circuits import GROWTH, MOST, let_through, probe_in_s, reset
from jobs.models import CircuitBreaker, Job
from queues.models import Queue
from tests.factories import claim_from, end, make_job, make_jobs, make_queue, status_of

pytestmark = pytest.mark.django_db
BAD, GOOD = Failed("no answer", None, 3_600.0), Succeeded()


@handler("circuit.whole", circuit=True)
def whole(ctx: object) -> None: ...


@handler("circuit.target", circuit=lambda payload: payload["host"])
def target(ctx: object) -> None: ...


def jobs_of(queue: Queue, count: int, host: str = "h") -> None:
    make_jobs(queue, count, "circuit.target", payload={"host": host}, max_attempts=100)


def breaker(name: str = "circuit.target h") -> CircuitBreaker:
    return CircuitBreaker.objects.get(name=name)


def run(queue: Queue, *verdicts: Verdict) -> list[Lease]:
    leases = claim_from(queue, len(verdicts))
    for lease, verdict in zip(leases, verdicts, strict=True):
        end(lease, verdict)
    return leases


def cool_down() -> None:
    CircuitBreaker.objects.update(opened_at=F("opened_at") - timedelta(seconds=31))


def opened(queue: Queue, more: int = 0) -> CircuitBreaker:
    jobs_of(queue, 5 + more)
    run(queue, *[BAD] * 5)
    assert breaker().state == "open"
    return breaker()


def test_a_circuit_is_named_by_its_type_and_target() -> None:
    assert circuit_of("circuit.whole", {}) == "circuit.whole"
    assert circuit_of("circuit.target", {"host": "a.b"}) == "circuit.target a.b"
    assert circuit_of("circuit.target", "no dict") is None
    assert circuit_of("noop", {}) is None
    assert circuit_of("unknown", {}) is None


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        ("1111", "closed"), ("11111", "open"), ("00111", "open"), ("00011", "closed"),
        ("0000000000" + "1111", "closed"),
        ("0000000000" + "11111", "open"), ("0100100", "closed"), ("01010101", "open"),
    ],
)  # fmt: skip
def test_it_opens_when_half_of_the_last_calls_of_five_at_least_went_wrong(
    queue: Queue, outcomes: str, state: str
) -> None:
    jobs_of(queue, len(outcomes))
    run(queue, *[BAD if outcome == "1" else GOOD for outcome in outcomes])

    assert breaker().state == state


def test_a_whole_batch_of_endings_counts_in_its_order(queue: Queue) -> None:
    from jobs.lease import Ending
    from jobs.lifecycle.settle import settle

    jobs_of(queue, 6)
    leases = claim_from(queue, 6)

    settled = settle([Ending.of(lease, BAD if n else GOOD, lease.token) for n, lease in enumerate(leases)])

    assert breaker().recent == "011111"
    assert settled.open_circuits == {(str(queue.project_id), "circuit.target h")}


@pytest.mark.parametrize(
    "verdict", [Snoozed(3_600.0), Interrupted(), Discarded("gone for good"), Failed("404", is_final=True)]
)
def test_what_is_no_fault_of_the_target_opens_nothing(queue: Queue, verdict: Verdict) -> None:
    jobs_of(queue, 10)
    run(queue, *[verdict] * 6)

    assert not CircuitBreaker.objects.filter(state="open").exists()


def test_while_it_is_open_its_jobs_are_passed_by_and_others_are_claimed(queue: Queue) -> None:
    opened(queue, more=3)
    other_host = make_job(queue, "circuit.target", payload={"host": "other"})
    plain = make_job(queue)

    leases = claim_from(queue, 10)

    assert [lease.job_id for lease in leases] == [str(other_host.pk), str(plain.pk)]
    assert Job.objects.filter(status="queued", attempt_count=0, circuit="circuit.target h").count() == 3


def test_another_projects_circuit_of_the_same_name_is_its_own(queue: Queue) -> None:
    opened(queue)
    elsewhere = make_queue()
    jobs_of(elsewhere, 1)

    assert len(claim_from(elsewhere, 1)) == 1


def test_nothing_is_let_through_before_it_has_cooled_down(queue: Queue) -> None:
    opened(queue, more=2)

    assert let_through() == 0
    assert claim_from(queue, 10) == []
    left = probe_in_s()
    assert left is not None
    assert 29 < left <= 30


def test_after_the_cool_down_exactly_one_job_is_let_through(queue: Queue) -> None:
    opened(queue, more=5)
    cool_down()

    assert let_through() == 1
    assert let_through() == 0
    [probe] = claim_from(queue, 10)
    assert let_through() == 0
    assert claim_from(queue, 10) == []
    assert (breaker().state, [str(id_) for id_ in breaker().let_through]) == ("half_open", [probe.job_id])


def test_a_long_outage_costs_each_job_an_attempt_rather_than_one_all_of_its_own(queue: Queue) -> None:
    opened(queue, more=3)
    probed = []
    for _ in range(6):
        cool_down()
        let_through()
        [probe] = run(queue, BAD)
        Job.objects.filter(pk=probe.job_id).update(status="queued")
        probed.append(probe.job_id)

    assert len(set(probed)) == 3
    assert sorted(probed[:3]) == sorted(probed[3:])


def test_a_probe_that_goes_wrong_opens_it_again_for_a_whole_cool_down(queue: Queue) -> None:
    opened(queue, more=5)
    cool_down()
    let_through()

    run(queue, BAD)

    assert (breaker().state, breaker().allowance, breaker().let_through) == ("open", None, [])
    assert let_through() == 0
    assert claim_from(queue, 10) == []


def test_after_a_probe_that_went_well_more_and_more_are_let_through_until_all_are(queue: Queue) -> None:
    opened(queue, more=1_000)
    cool_down()
    let_through()
    sizes = []
    run(queue, GOOD)
    while breaker().allowance is not None:
        let_through()
        leases = claim_from(queue, 1_000)
        sizes.append(len(leases))
        for lease in leases:
            end(lease, GOOD)

    assert sizes == [4, 16, 64, 256]
    assert (MOST, GROWTH) == (256, 4)
    assert breaker().state == "closed"
    assert len(claim_from(queue, 1_000)) == 1_000 - 1 - sum(sizes)


def test_it_opens_again_when_those_let_through_go_wrong(queue: Queue) -> None:
    opened(queue, more=100)
    cool_down()
    let_through()
    run(queue, GOOD)
    let_through()
    run(queue, *[GOOD] * 4)
    let_through()
    run(queue, *[BAD] * 16)

    assert breaker().state == "open"
    assert claim_from(queue, 10) == []


def test_late_results_of_calls_from_before_change_nothing(queue: Queue) -> None:
    jobs_of(queue, 12)
    early = claim_from(queue, 8)
    for lease in early[:5]:
        end(lease, BAD)
    cool_down()
    let_through()
    for lease in early[5:]:
        end(lease, GOOD if lease is early[5] else BAD)

    assert breaker().state == "half_open"
    assert breaker().allowance == 1


@pytest.mark.parametrize("fate", ["cancelled", "paused"])
def test_a_probe_that_will_not_run_is_replaced(queue: Queue, fate: str) -> None:
    other = make_queue(queue.project)
    opened(queue, more=1)
    jobs_of(other, 1)
    cool_down()
    let_through()
    [first] = breaker().let_through
    if fate == "cancelled":
        Job.objects.filter(pk=first).update(status="scheduled")
    else:
        Queue.objects.filter(pk=queue.pk).update(is_paused=True)

    let_through()

    [second] = breaker().let_through
    assert second != first
    assert [lease.job_id for lease in claim_from(other, 5)] == [str(second)]


def test_without_a_job_it_stays_open_and_is_probed_when_one_comes(queue: Queue) -> None:
    opened(queue)
    cool_down()
    assert let_through() == 0
    assert breaker().state == "open"

    jobs_of(queue, 1)

    assert let_through() == 1
    assert len(claim_from(queue, 5)) == 1


def test_closing_without_more_jobs_ends_in_closed(queue: Queue) -> None:
    opened(queue, more=1)
    cool_down()
    let_through()
    run(queue, GOOD)

    let_through()

    assert (breaker().state, breaker().allowance) == ("closed", None)


def test_a_reset_closes_it_at_once(queue: Queue) -> None:
    reset(opened(queue, more=3))

    assert len(claim_from(queue, 10)) == 3
    assert breaker().recent == ""


def test_jobs_without_a_circuit_write_no_breaker(queue: Queue) -> None:
    job = make_job(queue)
    run(queue, GOOD)

    assert status_of(job) == "completed"
    assert not CircuitBreaker.objects.exists()
