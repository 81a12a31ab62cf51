"""Events and alerts with real processes: signed calls that arrive, and a leader whose absence a worker reports."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from jobs.models import NOTICES_QUEUE, Alert, Job
from jobs.services.alert_rules import create_rule
from jobs.services.subscriptions import create_subscription
from orgs.webhook_secrets import create_secret
from queues.models import Queue
from scheduler_project.lib.egress import Policy, Rules
from tests.factories import make_job
from tests.processes import scheduler, worker
from tests.services.alert_faults import pass_minutes
from tests.sizes import long
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

LOOPBACK = "127.0.0.0/8"


class Receiver(HTTPServer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), _Keeper)
        self.url = f"http://127.0.0.1:{self.server_port}/in"

    def types(self) -> list[str]:
        return [json.loads(body)["type"] for _, body in self.calls]


class _Keeper(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.calls.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def _loopback_is_open(settings: Any) -> None:
    settings.EGRESS_POLICY = Policy(allow=Rules.of([LOOPBACK]))


def is_signed(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """As a receiver checks it, by the text of Standard Webhooks."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    message = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode()
    return expected in headers["webhook-signature"].split()


def test_events_arrive_signed_and_an_alert_is_told_once_in_each_direction(committed_queue: Queue) -> None:
    project = committed_queue.project
    secret = create_secret(project, by=None).secret
    with receiver() as server:
        create_subscription(project, name="s", url=server.url, types=["job.dead_letter", "alert.fired"], by=None)
        rule = create_rule(
            project, by=None, name="Dead", kind="dead_letter_growth", threshold=1, window_secs=60,
            webhook_url=server.url, emails=["ops@example.com"],
        )  # fmt: skip
        env = {"APP_EGRESS_ALLOW": LOOPBACK}
        with scheduler(), worker("--concurrency", "4", env=env) as process:
            make_job(committed_queue, "failing", max_attempts=1)
            # The rule's own call, and those of the subscription.
            wanted = ["alert.fired", "alert.fired", "job.dead_letter"]
            wait_until(lambda: sorted(server.types()) == wanted, 60, what="it has fired")
            pass_minutes()
            wanted.insert(2, "alert.resolved")
            wait_until(lambda: sorted(server.types()) == wanted, 60, what="it is over")
            wait_until(lambda: not _open_notices(), 60, what="every notice is sent")
            output = process.output()
        assert all(is_signed(headers, body, secret) for headers, body in server.calls)
        assert sorted(server.types()) == wanted

    assert output.count("Subject: [FIRING] Dead") == 1
    assert output.count("Subject: [RESOLVED] Dead") == 1
    assert Alert.objects.get(rule_id=rule.pk).state == "resolved"


@long
def test_a_worker_reports_that_nobody_leads_and_the_next_leader_that_it_is_over(committed_queue: Queue) -> None:
    project = committed_queue.project
    with receiver() as server:
        create_rule(project, by=None, name="Led", kind="no_leader", threshold=6, webhook_url=server.url)
        env = {"APP_EGRESS_ALLOW": LOOPBACK}
        with worker("--concurrency", "2", env=env), worker("--concurrency", "2", env=env):
            with scheduler() as leader:
                make_job(committed_queue, "noop", delay_s=0.1)
                wait_until(lambda: Job.objects.filter(status="completed").exists(), 60, what="the scheduler leads")
                leader.kill()
            wait_until(lambda: server.types() == ["alert.fired"], 90, what="a worker has told it")
            with scheduler():
                wait_until(lambda: server.types() == ["alert.fired", "alert.resolved"], 60, what="it is over")

    assert [alert.state for alert in Alert.objects.all()] == ["resolved"]


def _open_notices() -> bool:
    return Job.objects.filter(queue__name=NOTICES_QUEUE).exclude(status="completed").exists()
