"""The Python client against answers that a test makes up: what it sends again, what it raises, what it hides."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx
import pytest
from punctual_client import (
    BadRequest,
    Client,
    Conflict,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    ValidationFailed,
)

KEY = "pk_live_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcd"
JOB = {"id": "0193f6c1-7a2b-7c3d-8e4f-5a6b7c8d9e0f", "status": "queued", "job_type": "x"}
Answer = httpx.Response | Exception


class Server:
    """Answers one after the other; keeps what it was sent."""

    def __init__(self, *answers: Answer) -> None:
        self._answers, self.requests = list(answers), list[httpx.Request]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, retries: int = 5) -> Client:
        return Client(
            "http://test/", api_key=KEY, retries=retries, http=httpx.Client(transport=httpx.MockTransport(self))
        )


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """The pauses it would have made."""
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def _error(status: int, code: str, **headers: str) -> httpx.Response:
    body = {"error": code, "message": "no", "details": [{"field": "f", "message": "m"}]}
    return httpx.Response(status, json=body, headers={"X-Request-Id": "r1", **headers})


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut off"),
        _error(429, "too_many_requests"),
        httpx.Response(502, text="<html>bad gateway"),
        _error(503, "internal_error"),
    ],
)
def test_a_submission_is_sent_again_with_the_same_key(trouble, pauses):
    server = Server(trouble, httpx.Response(201, json=JOB))

    job = server.client().submit("x", queue="q")

    first, second = (request.content for request in server.requests)
    assert job.id == JOB["id"]
    assert first == second
    assert b'"idempotency_key":"auto-' in first
    assert len(pauses) == 1


def test_two_submissions_have_different_keys(pauses):
    server = Server(httpx.Response(201, json=JOB), httpx.Response(201, json=JOB))
    client = server.client()
    client.submit("x", queue="q")
    client.submit("x", queue="q")

    assert server.requests[0].content != server.requests[1].content


def test_pauses_grow_and_retry_after_is_honoured(pauses):
    busy = _error(503, "internal_error")
    server = Server(
        busy, busy, busy, _error(429, "too_many_requests", **{"Retry-After": "7"}), httpx.Response(200, json=JOB)
    )

    server.client().get("x")

    assert 0.1 <= pauses[0] <= 0.3
    assert 0.4 <= pauses[2] <= 1.2
    assert 7 <= pauses[3] < 8


def test_it_gives_up_in_the_end(pauses):
    with pytest.raises(Unreachable):
        Server(*[httpx.ConnectError("refused")] * 3).client(retries=2).get("x")
    with pytest.raises(TooManyRequests) as raised:
        Server(*[_error(429, "too_many_requests", **{"Retry-After": "9"})] * 2).client(retries=1).get("x")

    assert raised.value.retry_after_s == 9


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (_error(400, "bad_request"), BadRequest),
        (_error(400, "validation_error"), ValidationFailed),
        (_error(401, "unauthorized"), Unauthorized),
        (_error(403, "forbidden"), Forbidden),
        (_error(404, "not_found"), NotFound),
        (_error(409, "conflict"), Conflict),
        (_error(500, "internal_error"), ServerError),
        (_error(412, "conflict"), Conflict),
        (httpx.Response(404, text="nginx"), NotFound),
        (httpx.Response(418, text="teapot"), BadRequest),
        (httpx.Response(500, json=[1]), ServerError),
    ],
)
def test_other_errors_are_raised_at_once_as_their_kind(answer, kind, pauses):
    with pytest.raises(kind) as raised:
        Server(answer).client().get("x")

    assert type(raised.value) is kind
    assert raised.value.status == answer.status_code
    assert pauses == []


def test_an_error_tells_field_and_request(pauses):
    with pytest.raises(ValidationFailed, match=r"validation_error: no \(request r1\)") as raised:
        Server(_error(400, "validation_error")).client().submit("x", queue="q")

    [detail] = raised.value.details
    assert (detail.field, detail.message, raised.value.request_id) == ("f", "m", "r1")


@pytest.mark.parametrize("act", [lambda client: client.cancel("x"), lambda client: client.retry("x")])
def test_what_is_no_longer_allowed_once_done_is_not_sent_twice(act: Callable[[Client], str], pauses):
    with pytest.raises(Unreachable):
        act(Server(httpx.ReadTimeout("slow")).client())
    never_sent = Server(httpx.ConnectError("refused"), httpx.Response(200, json=JOB))

    assert act(never_sent.client()) == "queued"


def test_no_key_in_any_text(pauses):
    client = Server(httpx.ConnectError("refused")).client(retries=0)
    with pytest.raises(Unreachable) as raised:
        client.get("x")

    for text in (repr(client), str(client), str(raised.value), repr(raised.value), repr(vars(client))):
        assert KEY[12:] not in text
    assert "pk_live_AbCd" in repr(client)


def test_the_callers_connections_stay_open():
    http = httpx.Client(transport=httpx.MockTransport(Server(httpx.Response(200, json=JOB))))
    with Client("http://test", api_key=KEY, http=http):
        pass

    assert not http.is_closed


def test_fields_of_a_newer_server_do_not_disturb():
    job = Server(httpx.Response(200, json={**JOB, "mood": "fine"})).client().get("x")

    assert (job.status, job.raw["mood"]) == ("queued", "fine")


def test_a_job_needs_a_queue():
    from punctual_client import NewJob

    with pytest.raises(ValueError, match="queue"):
        Server().client().submit_many([NewJob("x")])
