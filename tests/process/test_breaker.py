"""A target that is down: hardly any calls, no attempts used up, one probe at a time over all workers."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import tests.work  # noqa: F401 - its handlers name the circuits of the jobs submitted here
from jobs.models import CircuitBreaker, Job, JobExecution
from queues.models import Queue
from tests.factories import make_jobs
from tests.processes import scheduler, worker
from tests.sizes import long, proved_by, seconds, size
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

JOBS = size("BREAKER_JOBS", suite=400, full=2_000)
DOWN_S = seconds("BREAKER_DOWN_S", suite=6, full=60)
COOL_S = seconds("BREAKER_COOL_S", suite=2, full=30)


class Target(ThreadingHTTPServer):
    """Counts the calls it gets, and how many of them at one moment; answers 503 while it is down."""

    daemon_threads = True
    request_queue_size = 100

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.is_up, self.slow_s = True, 0.0
        self.calls: list[float] = []
        self.lock = threading.Lock()
        self.now = self.most = 0

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class Answer(BaseHTTPRequestHandler):
    server: Target

    def do_GET(self) -> None:
        target = self.server
        with target.lock:
            target.calls.append(time.monotonic())
            target.now += 1
            target.most = max(target.most, target.now)
        time.sleep(target.slow_s)  # a slow target is what the case is about
        with target.lock:
            target.now -= 1
        self.send_response(200 if target.is_up else 503)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def target() -> Iterator[Target]:
    server = Target()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def workers(count: int, concurrency: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(scheduler(env={"APP_BREAKER_COOL_DOWN_SECS": str(int(COOL_S))}))
        for _ in range(count):
            stack.enter_context(worker("--concurrency", str(concurrency)))
        yield


def breaker() -> CircuitBreaker | None:
    return CircuitBreaker.objects.first()


def submit(queue: Queue, target: Target, count: int) -> None:
    make_jobs(queue, count, "call", payload={"port": target.port, "name": "shop"}, max_attempts=5)


@proved_by("breaker")
@pytest.mark.timeout(300)
def test_while_the_target_is_down_it_is_hardly_called_and_no_attempt_is_used(
    committed_queue: Queue, target: Target
) -> None:
    target.is_up = False
    submit(committed_queue, target, JOBS)
    with workers(4, 2):
        wait_until(lambda: (found := breaker()) is not None and found.state == "open", timeout_s=90)
        went_down = time.monotonic()
        wait_until(lambda: time.monotonic() - went_down > DOWN_S, timeout_s=DOWN_S + 5)
        calls_while_down = len(target.calls)
        used = sum(Job.objects.filter(attempt_count__gt=0).values_list("attempt_count", flat=True))
        target.is_up = True
        wait_until(lambda: Job.objects.filter(status="completed").count() == JOBS, timeout_s=120)

    failed = JobExecution.objects.filter(status="failed").count()
    print(f"\n{JOBS} jobs: {calls_while_down} calls in {DOWN_S:.0f} s of no answer, {used} attempts used by them")
    assert calls_while_down < 20
    assert used <= calls_while_down  # only calls that were made used an attempt; the latest may be under way
    assert not Job.objects.filter(status="dead_letter").exists()
    assert len(target.calls) == JOBS + failed


@long
def test_half_open_means_one_request_over_all_workers(committed_queue: Queue, target: Target) -> None:
    target.is_up = False
    submit(committed_queue, target, 500)
    with workers(8, 4):
        wait_until(lambda: (found := breaker()) is not None and found.state == "open", timeout_s=90)
        wait_until(lambda: not Job.objects.filter(status__in=["claimed", "running"]).exists(), timeout_s=60)
        before, target.most, target.slow_s = len(target.calls), 0, 1.0
        wait_until(lambda: len(target.calls) > before + 1, timeout_s=30 + 3 * COOL_S)

        assert target.most == 1  # of two probes in a row, each alone
        target.is_up, target.slow_s = True, 0.0
        wait_until(lambda: Job.objects.filter(status="completed").count() == 500, timeout_s=60 + 2 * COOL_S)
    found = breaker()
    assert found is not None
    assert (found.state, found.allowance) == ("closed", None)
