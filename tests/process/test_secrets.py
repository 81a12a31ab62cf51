"""Keys, tokens and passwords stand in no log, event, metric or row, however loud the processes and whatever fails."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from jobs.handlers import registry
from jobs.models import Job
from queues.models import Queue
from tests.bad_targets import OUTSIDE, RESET, Target, says
from tests.factories import make_job
from tests.loopback import Certificates, playground
from tests.processes import scheduler, worker
from tests.servers import web_process
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

LOUD = {"APP_LOG_LEVEL": "debug", "APP_EGRESS_ALLOW": OUTSIDE}
GOOD_PASSWORD, BAD_PASSWORD = "one-good-Password-7Kq", "one-bad-Password-4Xz"
BEARER, URL_PASSWORD = "bearer-of-a-webhook-9Lm", "pw-2Rt-in-a-url"


class Caller:
    """Speaks to a real web server."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(
            f"{self._url}/{path}", data, {"Content-Type": "application/json", **named}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read().decode()
                return answer.status, json.loads(text) if text.startswith("{") else text
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


class Listener(threading.Thread):
    """Keeps all that the event stream says."""

    def __init__(self, url: str, ticket: str) -> None:
        super().__init__(daemon=True)
        self._answer = urllib.request.urlopen(f"{url}/api/events?ticket={ticket}", timeout=60)
        self.heard = b""
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the server ends with the test
            while part := self._answer.readline():
                self.heard += part


class Ada:
    """Somebody who signs in, and all the secrets that come of it."""

    def __init__(self, call: Caller) -> None:
        who = {"email": "ada@example.com", "password": GOOD_PASSWORD}
        assert call("POST", "api/auth/register", {**who, "full_name": "Ada"})[0] == 201
        assert call("POST", "api/auth/login", {**who, "password": BAD_PASSWORD})[0] == 401
        tokens = call("POST", "api/auth/login", who)[1]
        me = {"Authorization": f"Bearer {tokens['access']}"}
        assert call("GET", "api/projects", Authorization=f"Bearer {tokens['access']}x")[0] == 401
        org = call("POST", "api/organizations", {"name": "Acme"}, **me)[1]
        project = call("POST", "api/projects", {"name": "Web", "org_id": org["id"]}, **me)[1]
        self.key: str = project["api_key"]
        assert call("GET", "api/jobs", X_API_Key=f"{self.key}x")[0] == 401
        signing = call("POST", f"api/projects/{project['id']}/webhook-secrets", {}, **me)[1]["secret"]
        self.ticket: str = call("POST", "api/ws-tickets", {}, X_API_Key=self.key)[1]["ticket"]
        self.queue_id: str = call("POST", "api/queues", {"name": "q"}, X_API_Key=self.key)[1]["id"]
        self.secrets = [
            GOOD_PASSWORD, BAD_PASSWORD, BEARER, self.key, signing, self.ticket, tokens["access"], tokens["refresh"]
        ]  # fmt: skip


def rows(*, without: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Each row of each table as text."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            minus = "".join(f" - '{name}'" for name in without)
            cursor.execute(f'select (to_jsonb(t){minus})::text from "{table}" t')
            yield from ((table, text) for (text,) in cursor.fetchall())


def submitted_unchecked(queue_id: str, payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job whose payload would be refused, as one that was stored by an older release."""
    unchecked = dataclasses.replace(registry._exact["http.webhook"], check=None)
    monkeypatch.setitem(registry._exact, "http.webhook", unchecked)
    return make_job(Queue.objects.get(pk=queue_id), "http.webhook", payload=payload, max_attempts=1)


def buried(pk: str) -> bool:
    return Job.objects.get(pk=pk).status == "dead_letter"


@pytest.mark.timeout(240)
def test_no_secret_leaves_its_place(
    transactional_db: None, tmp_path: Path, unused_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Target("reset", "connection_lost", play=says(RESET))
    with (
        playground([broken], Certificates(tmp_path)) as servers,
        web_process(unused_port, **LOUD) as (web, url),
        worker("--metrics-port", str(unused_port + 1), env=LOUD) as runner,
        scheduler("--metrics-port", str(unused_port + 2), env=LOUD) as leader,
    ):
        call = Caller(url)
        ada = Ada(call)
        listener = Listener(url, ada.ticket)
        headers = {"Authorization": BEARER}
        job = {"queue_id": ada.queue_id, "job_type": "http.webhook", "max_attempts": 1}
        failing = call(
            "POST", "api/jobs", {**job, "payload": {"url": servers.url(broken), "headers": headers}}, X_API_Key=ada.key
        )[1]["id"]
        inside = {"url": f"https://user:{URL_PASSWORD}@127.0.0.1:1/", "headers": headers}
        status, refusal = call("POST", "api/jobs", {**job, "payload": inside}, X_API_Key=ada.key)
        assert status == 400
        old = str(submitted_unchecked(ada.queue_id, inside, monkeypatch).pk)
        for pk in (failing, old):
            wait_until(partial(buried, pk), timeout_s=60)
        wait_until(lambda: old.encode() in listener.heard, timeout_s=20, what="the events")
        errors = [str(Job.objects.get(pk=pk).error_message) for pk in (failing, old)]
        assert "connection_lost" in errors[0]
        assert "must not hold a user or password" in errors[1]
        wait_until(lambda: leader.events("scheduler_started"), timeout_s=60)
        texts = [("refusal", refusal)]
        texts += [("metrics", Caller(f"http://127.0.0.1:{unused_port + n}")("GET", "metrics")[1]) for n in range(3)]
        web.send(signal.SIGTERM)
        web.wait(60)
        texts += [("web", web.output()), ("worker", runner.output()), ("scheduler", leader.output())]
    texts.append(("events", listener.heard.decode()))
    texts += rows(without=("payload", "payload_snapshot"))

    assert {place for place, _ in texts} >= {"web", "jobs", "job_executions", "dead_letter_queue", "audit_log"}
    for place, text in texts:
        for secret in [*ada.secrets, URL_PASSWORD]:
            assert secret not in text, f"{secret} in {place}"
    for table, text in rows():  # where the payload itself is stored, its header is sealed
        assert not any(secret in text for secret in ada.secrets), table
