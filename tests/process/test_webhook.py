"""Webhooks under real workers: bad targets by the hundred, and the scenarios of calls that go wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.models import CircuitBreaker, Job, JobExecution
from queues.models import Queue
from queues.services import create_retry_policy
from scheduler_project.lib.egress import Policy, Rules
from tests.bad_targets import ALL, DONE, OUTSIDE, RESET, Target, answer, closes, redirects, says, then_for_ever
from tests.factories import make_job, reload, status_of
from tests.loopback import Certificates, Playground, playground
from tests.processes import Process, scheduler, worker
from tests.sizes import size
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

#: Each set is at most four rounds over all targets; a fifth call in one place would open its circuit.
SETS = size("WEBHOOK_SETS", suite=1, full=5)
ROUNDS = size("WEBHOOK_ROUNDS", suite=2, full=4)
MIB = 1024 * 1024
PLAYED = [target for target in ALL if target.outcome != "bad_payload"]
ENDED = ("completed", "dead_letter")


@pytest.fixture(autouse=True)
def _everything_can_be_submitted(settings: Any) -> None:
    """What is closed is refused by the worker here, which would be too late to test otherwise."""
    settings.EGRESS_POLICY = Policy(allow=Rules.of(["0.0.0.0/0", "::/0"]))


def webhook_worker(certificates: Certificates, *args: str) -> Process:
    env = {"APP_EGRESS_ALLOW": OUTSIDE, "SSL_CERT_FILE": str(certificates.authority)}
    return worker("--concurrency", "10", *args, env=env)


def submit(queue: Queue, servers: Playground, target: Target, **fields: Any) -> Job:
    timeout_s = 1 if target.outcome == "timeout" else 30
    payload = {"url": servers.url(target), "timeout_s": timeout_s, **target.payload, **fields.pop("payload", {})}
    return make_job(queue, "http.webhook", payload=payload, **{"max_attempts": 1, **fields})


def has_ended(*jobs: Job) -> Callable[[], bool]:
    ids = [job.pk for job in jobs]
    return lambda: not Job.objects.filter(pk__in=ids).exclude(status__in=ENDED).exists()


def all_closed(servers: Playground) -> Callable[[], bool]:
    return lambda: servers.open_count == 0


def end_of(job: Job) -> str:
    found = reload(job)
    return DONE if found.status == DONE else str(found.error_message).rpartition("Permanent: ")[2]


@pytest.mark.timeout(900)
def test_bad_targets_end_as_documented_and_leave_nothing_behind(committed_queue: Queue, tmp_path: Path) -> None:
    grown, files = [], []
    certificates = Certificates(tmp_path)
    with webhook_worker(certificates) as process:
        for _ in range(SETS):
            CircuitBreaker.objects.all().delete()  # a port may come again, and with it the calls of an earlier set
            with playground(PLAYED, certificates) as servers:
                for _ in range(ROUNDS):
                    jobs = {target.name: submit(committed_queue, servers, target) for target in PLAYED}
                    wait_until(has_ended(*jobs.values()), 180)
                    for target in PLAYED:
                        assert target.outcome in end_of(jobs[target.name]), target.name
                    wait_until(all_closed(servers), what="all connections are closed")
                    grown.append(process.memory())
                    files.append(process.open_files())
                assert servers.visits == 0, "the private server was reached"
    print(f"\n{SETS * ROUNDS} x {len(PLAYED)} targets: MiB {[round(n / MIB) for n in grown]}, open files {files}")
    assert grown[-1] - grown[0] < 30 * MIB
    assert files[-1] <= files[0] + 2


# -- webhook-slow-drip ----------------------------------------------------------------------------------------------
DRIPS = [
    Target("one byte a second", "timeout", play=then_for_ever(b"HTTP/1.1 200 OK\r\n\r\n", again=b"x", pause_s=1.0)),
    Target("slow headers", "timeout", play=then_for_ever(b"HTTP/1.1 200 OK\r\nX: ", again=b"x", pause_s=1.0)),
    Target("says nothing", "timeout", play=says()),
]


def test_a_slow_target_holds_a_seat_only_until_the_deadline(committed_queue: Queue, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    with playground(DRIPS, certificates) as servers, webhook_worker(certificates) as process:
        wait_until(lambda: process.events("worker_started"), timeout_s=60)
        jobs = [submit(committed_queue, servers, target, payload={"timeout_s": 5}) for target in DRIPS]
        for job in jobs:
            wait_until(has_ended(job), timeout_s=60)
            assert "timeout: no complete answer within 5 s" in end_of(job)
    for execution in JobExecution.objects.all():
        assert execution.started_at is not None
        assert 5 <= (execution.finished_at - execution.started_at).total_seconds() < 6


# -- webhook-redirect-inside ----------------------------------------------------------------------------------------
def test_redirects_lead_nowhere(committed_queue: Queue, tmp_path: Path) -> None:
    inside = Target("inside", DONE, play=says(answer(b"secret")))
    certificates = Certificates(tmp_path)
    with playground([inside], certificates) as second:
        elsewhere = second.url(inside)
        first = [
            Target(str(s), "redirect_not_allowed", True, redirects(s, elsewhere)) for s in (301, 302, 303, 307, 308)
        ]
        with playground(first, certificates) as servers:
            hop = Target("two hops", "redirect_not_allowed", True, redirects(302, servers.url(first[1])))
            with playground([hop], certificates) as outer, webhook_worker(certificates):
                headers = {"headers": {"Authorization": "Bearer s3cret"}}
                jobs = [submit(committed_queue, servers, t, payload=headers, max_attempts=5) for t in first]
                jobs.append(submit(committed_queue, outer, hop, payload=headers, max_attempts=5))
                for job in jobs:
                    wait_until(has_ended(job), timeout_s=60)
                    assert "redirect not allowed" in end_of(job)
                    assert JobExecution.objects.filter(job=job).count() == 1
                calls = [len(servers.heads[target.name]) for target in first]
        assert second.heads == {}
    assert calls == [1] * len(first), "the second hop was never made"


# -- webhook-retry-rules --------------------------------------------------------------------------------------------
FINAL, RETRIED, GOOD = (301, 400, 404, 410), (408, 425, 429, 500, 503), (200, 204)
RULES = [
    Target(str(status), "", play=says(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status))
    for status in (*GOOD, *FINAL, *RETRIED)
] + [Target("reset", "", play=says(RESET)), Target("hangs up", "", play=closes())]


def test_what_is_retried_and_by_what_a_receiver_knows_it(committed_queue: Queue, tmp_path: Path) -> None:
    at_once = create_retry_policy(committed_queue.project, name="at once", strategy="fixed", base_delay_ms=100)
    Queue.objects.update(default_retry_policy=at_once)
    certificates = Certificates(tmp_path)
    with playground(RULES, certificates) as servers, webhook_worker(certificates), scheduler():
        jobs = {target.name: submit(committed_queue, servers, target, max_attempts=3) for target in RULES}
        for job in jobs.values():
            wait_until(has_ended(job), timeout_s=60)

    for name, job in jobs.items():
        tries = 1 if name in {str(status) for status in (*GOOD, *FINAL)} else 3
        heads = [head.decode().lower() for head in servers.heads[name]]
        assert len(heads) == tries, name
        assert status_of(job) == ("completed" if name in ("200", "204") else "dead_letter")
        assert {_header(head, "webhook-id") for head in heads} == {str(job.pk)}
        assert [_header(head, "punctual-attempt") for head in heads] == [str(n + 1) for n in range(tries)]
        fences = [int(_header(head, "punctual-fencing-number")) for head in heads]
        assert sorted(set(fences)) == fences


def _header(head: str, name: str) -> str:
    match = re.search(rf"^{name}: (.*?)\r$", head, re.MULTILINE)
    assert match, f"no {name} in {head}"
    return match[1]


# -- lists of the organization --------------------------------------------------------------------------------------
def test_a_worker_follows_the_lists_of_the_organization(committed_queue: Queue, tmp_path: Path) -> None:
    good = Target("good", DONE, play=says(answer(b"hi")))
    organization = committed_queue.project.organization
    certificates = Certificates(tmp_path)
    with playground([good], certificates) as servers, webhook_worker(certificates):
        job = submit(committed_queue, servers, good)
        wait_until(lambda: status_of(job) == "completed", timeout_s=60)
        organization.egress_deny = [OUTSIDE]
        organization.save()

        def is_denied() -> bool:
            tried = submit(committed_queue, servers, good)
            wait_until(lambda: status_of(tried) in ENDED, timeout_s=60)
            return "egress_denied" in end_of(tried)

        wait_until(is_denied, timeout_s=60, every_s=0.5, what="the worker has heard of the list")
