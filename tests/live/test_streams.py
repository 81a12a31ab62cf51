"""Server-sent events, over a real server."""

from __future__ import annotations

import http.client
import json
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import pytest

from orgs.models import ApiKey
from queues.models import Queue
from scheduler_project.lib.ids import uuid7
from tests.factories import make_job, make_project, make_queue
from tests.personas import make_key
from tests.processes import worker
from tests.servers import web_process, web_server

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def opened(url: str, path: str, method: str = "GET", **headers: str) -> Iterator[http.client.HTTPResponse]:
    """An answer that may still be coming."""
    place = urlsplit(url)
    with closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)) as connection:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        with connection.getresponse() as answer:
            yield answer


def status_of(url: str, path: str, **headers: str) -> int:
    """The status of a whole answer."""
    with opened(url, path, **headers) as answer:
        answer.read()
        return answer.status


def events(answer: http.client.HTTPResponse):
    """The events as they come, until the end."""
    for line in answer:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def test_the_stream_tells_what_the_socket_tells(committed_queue: Queue, unused_port):
    key = make_key(committed_queue.project, ApiKey.Scope.READ)
    foreign = make_queue(make_project())
    mine = {"X_API_Key": key, "Last_Event_ID": "7", "X_Request_Id": "mine"}
    with web_server(unused_port) as url, worker(), opened(url, "/api/events", **mine) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
        assert answer.headers["X-Request-Id"] == "mine"
        told = events(answer)
        assert next(told) == {"type": "resync"}  # what came since that event is not kept
        assert next(told) == {"type": "resync"}  # from now on nothing is missing
        make_job(foreign)
        job = make_job(committed_queue)
        # The worker's own coming may be told in between.
        of_jobs = (event for event in told if event["type"] == "job")
        seen = [next(of_jobs) for _ in range(3)]

        assert {event["job"] for event in seen} == {str(job.pk)}
        assert {event["status"] for event in seen} == {"queued", "claimed", "completed"}


def test_one_jobs_stream_begins_with_its_state_and_ends_with_it(committed_queue: Queue, unused_port):
    key = make_key(committed_queue.project)
    job = make_job(committed_queue)
    with web_server(unused_port) as url, opened(url, f"/api/jobs/{job.pk}/events", X_API_Key=key) as answer:
        told = events(answer)
        first = next(told)
        with worker():
            rest = list(told)

    assert first["status"] == "queued"
    assert [event["status"] for event in rest if event["type"] == "job"][-1] == "completed"


def test_refusals_come_in_the_envelope(committed_queue: Queue, unused_port):
    key, work = make_key(committed_queue.project), make_key(committed_queue.project, ApiKey.Scope.WORK)
    foreign = make_job(make_queue(make_project()))
    with web_server(unused_port) as url:
        for path, method, headers, status in (
            ("/api/events", "GET", {}, 401),
            ("/api/events", "GET", {"X_API_Key": work}, 403),
            ("/api/events", "GET", {"X_API_Key": key, "Origin": "https://evil.example"}, 403),
            ("/api/events", "POST", {"X_API_Key": key}, 405),
            ("/api/events?queue=x", "GET", {"X_API_Key": key}, 400),
            (f"/api/events?project={foreign.project_id}", "GET", {"X_API_Key": key}, 404),
            (f"/api/jobs/{foreign.pk}/events", "GET", {"X_API_Key": key}, 404),
            (f"/api/jobs/{uuid7()}/events", "GET", {"X_API_Key": key}, 404),
            (f"/api/jobs/{'x' * 36}/events", "GET", {"X_API_Key": key}, 404),
        ):
            with opened(url, path, method, **headers) as answer:
                body = json.load(answer)
                assert answer.status == status, (path, body)
                assert body.keys() == {"error", "message", "details"}
                assert answer.headers["X-Request-Id"]


def test_a_stream_ends_at_a_deploy(committed_queue: Queue, unused_port):
    key = make_key(committed_queue.project)
    with web_process(unused_port) as (web, url), opened(url, "/api/events", X_API_Key=key) as answer:
        next(events(answer))
        web.send(signal.SIGTERM)

        assert list(events(answer)) == []
        assert web.wait(20) == 0
