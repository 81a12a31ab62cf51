"""http.webhook against a server on loopback that misbehaves: each call ends as documented, nothing inner is reached."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.handlers.base import Permanent, RetryAfter
from jobs.handlers.facts import ProjectFacts
from jobs.handlers.webhook.handler import WebhookFailed, read_retry_after, send
from jobs.handlers.webhook.payload import BadPayload, check_payload
from scheduler_project.lib.egress import Policy, Rules
from tests.factories import make_job

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
DRIP = "drip"
CTX: Any = SimpleNamespace(job_id="j1", attempt=2, fencing_number=7, project_facts=ProjectFacts)


def _call(
    answer: bytes,
    *,
    host: str = "target.test",
    policy: Policy | None = None,
    pause: str = "",
    ctx: Any = CTX,
    **fields: Any,
):
    """Send one call to a server that gives ``answer``; the result or error, and what the server was sent."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        try:
            writer.write(answer)
            while pause == DRIP:
                await asyncio.sleep(0.05)
                writer.write(b"x")
                await writer.drain()
            if pause == "endless":
                while True:
                    writer.write(b"x" * 65_536)
                    await writer.drain()
            await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def loopback(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async def main() -> Any:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        allowed = policy or Policy(allow=Rules.of(["127.0.0.1"]))
        payload = {"url": f"http://{host}:{port}/", "timeout_s": 5, **fields}
        try:
            return await send(ctx, check_payload(payload), allowed, loopback)
        except Exception as error:  # noqa: BLE001 - the outcome is what the tests look at
            return error
        finally:
            server.close()

    return asyncio.run(main()), seen


def test_sends_and_keeps_the_answer() -> None:
    result, seen = _call(OK, body={"a": 1}, headers={"Authorization": "Bearer x"})

    assert (result["status"], result["body"], result["truncated"]) == (200, "hi", False)
    head = seen[0].lower()
    for line in (b"webhook-id: j1", b"punctual-job-id: j1", b"punctual-attempt: 2", b"punctual-fencing-number: 7"):
        assert line in head
    assert b"authorization: bearer x" in head
    assert b"webhook-signature" not in head, "without a secret there is nothing to sign with"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_what_may_pass_is_retried(status: int) -> None:
    assert isinstance(_call(b"HTTP/1.1 %d X\r\n\r\n" % status)[0], WebhookFailed)


@pytest.mark.parametrize("status", [301, 307, 400, 404, 410])
def test_what_will_not_pass_is_final(status: int) -> None:
    result, seen = _call(b"HTTP/1.1 %d X\r\nLocation: http://127.0.0.1/\r\n\r\n" % status)
    assert isinstance(result, Permanent)
    assert len(seen) == 1, "no redirect was followed"


def test_the_job_may_say_that_404_is_retried() -> None:
    assert isinstance(_call(b"HTTP/1.1 404 X\r\n\r\n", retry_status=[404])[0], WebhookFailed)


def test_retry_after_is_honoured() -> None:
    result, _ = _call(b"HTTP/1.1 503 X\r\nRetry-After: 17\r\n\r\n")
    assert isinstance(result, RetryAfter)
    assert result.delay_s == 17
    assert read_retry_after("Thu, 01 Jan 1970 00:00:00 GMT") == 0
    assert read_retry_after("soon") is None


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-A: ", b""])
def test_a_drip_ends_at_the_deadline(head: bytes) -> None:
    result, _ = _call(head, pause=DRIP, timeout_s=0.5)
    assert isinstance(result, WebhookFailed)
    assert str(result).startswith(("timeout", "bad_answer"))


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n"]
)
def test_of_an_endless_body_only_the_beginning_is_kept(head: bytes) -> None:
    result, _ = _call(head, pause="endless")
    assert result["truncated"]
    assert len(result["body"]) == 65_536


def test_a_packed_body_is_not_unpacked() -> None:
    result, _ = _call(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b")
    assert result["body"] is None


@pytest.mark.parametrize(
    "answer", [b"nonsense\r\n\r\n", b"", OK[:-1], b"HTTP/1.1 200 OK\r\nX-Big: " + b"x" * 200_000 + b"\r\n\r\n"]
)
def test_a_broken_answer_is_retried(answer: bytes) -> None:
    result, _ = _call(answer)
    assert isinstance(result, WebhookFailed)


def test_a_name_that_leads_inside_is_not_reached() -> None:
    result, seen = _call(OK, policy=Policy())
    assert isinstance(result, Permanent)
    assert str(result).startswith("egress_denied")
    assert seen == []


CLOSED = [
    "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "192.0.0.192", "100.64.0.1", "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255", "168.63.129.16", "::1", "::", "fe80::1%eth0", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe", "2002:7f00:1::", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "::127.0.0.1",
]  # fmt: skip


@pytest.mark.parametrize("text", CLOSED)
def test_closed_addresses(text: str) -> None:
    assert not Policy().permits("x.test", text)


def test_lists() -> None:
    policy = Policy(allow=Rules.of(["10.0.0.0/8", "*.inside.test"]), deny=Rules.of(["10.9.0.0/16", "8.8.8.8"]))
    assert policy.permits("x", "10.1.1.1")
    assert policy.permits("A.inside.test.", "127.0.0.1")
    assert not policy.permits("a.inside.test", "10.9.1.1")
    assert not policy.permits("x", "8.8.8.8")
    assert not policy.permits("x", "::ffff:8.8.8.8")
    assert policy.permits("x", "1.1.1.1")


@pytest.mark.parametrize(
    ("field", "value"),
    [("url", "ftp://x"), ("url", "http://u:pw@x/"), ("url", 3), ("method", "BREW"), ("headers", {"Host": "x"}),
     ("headers", {"a": "b\r\nc"}), ("timeout_s", True), ("expected_status", ["2xx"]), ("method", []), ("url", "http://x:99999/")],
)  # fmt: skip
def test_a_bad_payload_names_the_field(field: str, value: Any) -> None:
    with pytest.raises(BadPayload, match=rf"payload\.{field}") as caught:
        check_payload({"url": "https://x.test/", field: value})
    assert "pw" not in str(caught.value)


@pytest.mark.django_db
def test_the_keys_that_a_call_carries_are_not_stored_in_the_clear(queue: Any) -> None:
    payload = {"url": "https://example.com/", "headers": {"authorization": "Bearer s3cret", "X-Shop": "7"}}
    job = make_job(queue, "http.webhook", payload=payload)

    assert "s3cret" not in str(job.payload)
    assert job.payload["headers"]["X-Shop"] == "7"
    assert job.circuit == "http.webhook example.com:443"
