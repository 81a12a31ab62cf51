"""Signatures by Standard Webhooks: against a value worked out elsewhere, and what the receiver gets of a real call."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from types import SimpleNamespace
from typing import Any

from jobs.handlers.facts import ProjectFacts
from jobs.handlers.webhook.handler import WebhookFailed
from jobs.handlers.webhook.signature import signed_headers
from scheduler_project.lib.secretbox import Sealed
from tests.unit.test_webhook import CTX, OK, _call

#: The example that the specification's reference libraries are tested with.
SECRET = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")


def test_the_example_of_the_specification() -> None:
    headers = signed_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', [SECRET])

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_without_a_secret_there_is_no_signature() -> None:
    assert signed_headers("j1", 1, b"", []) == {"webhook-id": "j1", "webhook-timestamp": "1"}


def _headers(head: bytes) -> dict[str, str]:
    lines = head.decode("ascii").split("\r\n")[1:]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}


def test_while_secrets_rotate_the_receiver_may_know_either() -> None:
    old, new = b"o" * 32, b"n" * 32
    ctx = SimpleNamespace(**{**vars(CTX), "project_facts": lambda: ProjectFacts(webhook_secrets=(new, old))})

    result, seen = _call(OK, ctx=ctx, body={"ä": 1})

    headers = _headers(seen[0])
    assert result["status"] == 200
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    message = f"j1.{headers['webhook-timestamp']}.".encode() + '{"ä":1}'.encode()
    signatures = headers["webhook-signature"].split(" ")
    assert signatures == [
        "v1," + base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode() for key in (new, old)
    ]


def test_what_can_not_be_signed_is_not_sent() -> None:
    def unreadable() -> Any:
        raise Sealed

    result, seen = _call(OK, ctx=SimpleNamespace(**{**vars(CTX), "project_facts": unreadable}))

    assert isinstance(result, WebhookFailed)
    assert str(result).startswith("signing_failed")
    assert seen == []


def test_facts_do_not_show_their_secrets() -> None:
    assert "secretive" not in repr(ProjectFacts(webhook_secrets=(b"secretive",)))
