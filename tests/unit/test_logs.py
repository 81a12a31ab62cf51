"""Log lines: one JSON object each, with time, level, target and thread; without secrets."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
import structlog
from django.conf import settings

from jobs.handlers.base import JobContext
from jobs.worker.outbox import Outbox
from scheduler_project.lib import logs

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What was logged since the start of the test, parsed."""
    stream = io.StringIO()
    logs.configure(level="debug", pretty=False, stream=stream)
    # Loggers made before keep the processors they were made with; these write to the same stream in any case.
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logs.configure(level=settings.LOG_LEVEL, pretty=settings.LOG_FORMAT == "pretty", stream=sys.stderr)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc.DEF-123_~+/=", "Authorization: Bearer ***"),
        ("bearer  xyz failed", "bearer  *** failed"),
        ("at postgresql://ann:s3cret@db/jobs", "at postgresql://ann:***@db/jobs"),
        ("at redis://:s3cret@cache:6379/0", "at redis://:***@cache:6379/0"),
        ("two: http://a:b@x http://c:d@y", "two: http://a:***@x http://c:***@y"),
        ("a password with an at sign: http://a:b@c@x/", "a password with an at sign: http://a:***@x/"),
        ("key pk_live_a1B2c3 was refused", "key *** was refused"),
        ("nothing to hide: http://x:80/a, me@example.com", "nothing to hide: http://x:80/a, me@example.com"),
        ('in quotes: "http://a:b@x", "me@y"', 'in quotes: "http://a:***@x", "me@y"'),
    ],
)
def test_redaction_blots_out_secrets_and_nothing_else(text: str, expected: str) -> None:
    assert logs.redact(text) == expected


def test_a_line_has_time_level_target_event_and_thread(lines: Lines) -> None:
    logs.get("punctual.example").warning("something_happened", count=3)

    [line] = lines()
    assert line["level"] == "warning"
    assert line["target"] == "punctual.example"
    assert (line["event"], line["count"]) == ("something_happened", 3)
    assert line["thread"] == "MainThread"
    assert isinstance(line["thread_id"], int)
    assert datetime.fromisoformat(line["timestamp"]).utcoffset() is not None


def test_lines_of_other_libraries_look_the_same(lines: Lines) -> None:
    logging.getLogger("some.library").error("connecting to %s failed", "http://ann:s3cret@x/", extra={"attempt": 2})

    [line] = lines()
    assert (line["level"], line["target"], line["attempt"]) == ("error", "some.library", 2)
    assert line["event"] == "connecting to http://ann:***@x/ failed"
    assert {"timestamp", "thread", "thread_id"} <= set(line)


@pytest.mark.parametrize(
    "name", ["password", "new_password", "client_secret", "access_token", "api_key", "Authorization", "cookie"]
)
def test_fields_named_like_secrets_are_blotted_out(lines: Lines, name: str) -> None:
    logs.get("x").info("event", **{name: "hunter2"})

    [line] = lines()
    assert line[name] == "***"


def test_secrets_inside_of_nested_fields_are_blotted_out(lines: Lines) -> None:
    logs.get("x").info("event", request={"headers": {"Authorization": "hunter2"}, "urls": ["http://a:hunter2@x"]})

    [line] = lines()
    assert "hunter2" not in json.dumps(line)
    assert line["request"]["urls"] == ["http://a:***@x"]


def test_secrets_in_errors_given_as_fields_are_blotted_out(lines: Lines) -> None:
    logs.get("x").info("event", error=ValueError("at http://a:hunter2@x"))

    [line] = lines()
    assert "http://a:***@x" in line["error"]


def test_a_traceback_is_a_field_of_its_line_without_secrets(lines: Lines) -> None:
    try:
        raise ValueError("postgresql://ann:hunter2@db")
    except ValueError:
        logs.get("x").exception("failed")
        logging.getLogger("x").exception("failed")

    for line in lines():
        assert "Traceback" in line["exception"]
        assert "postgresql://ann:***@db" in line["exception"]
        assert "hunter2" not in json.dumps(line)
    assert len(lines()) == 2


def test_a_line_logged_on_behalf_of_a_job_carries_its_ids(lines: Lines) -> None:
    ctx = JobContext(
        job_id="j1", token="t", queue_id="q1", job_type="mail", attempt=2, fencing_number=9, trace_id="",
        payload_json="{}", timeout_s=None, outbox=Outbox(),
    )  # fmt: skip
    before = logs.current_job.set(ctx)
    try:
        logging.getLogger("user.code").info("sending")
        logs.get("x").info("own", attempt=7)
    finally:
        logs.current_job.reset(before)
    logs.get("x").info("after")

    [sending, own, after] = lines()
    assert {k: sending[k] for k in ("job_id", "queue_id", "job_type", "attempt")} == {
        "job_id": "j1", "queue_id": "q1", "job_type": "mail", "attempt": 2,
    }  # fmt: skip
    assert own["attempt"] == 7
    assert "job_id" not in after


def test_request_ids_bound_to_the_context_are_on_each_line(lines: Lines) -> None:
    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        logging.getLogger("x").info("inside")
    logging.getLogger("x").info("outside")

    [inside, outside] = lines()
    assert inside["request_id"] == "r-1"
    assert "request_id" not in outside


def test_line_breaks_and_odd_values_stay_within_one_line(lines: Lines) -> None:
    logs.get("x").info("event", text="a\nb\r\n\0", odd={1, 2}, cls=object)

    [line] = lines()
    assert line["text"] == "a\nb\r\n\0"


def test_lines_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    logs.configure(level="warning", pretty=False, stream=stream)
    try:
        logging.getLogger("quiet").info("unheard")
        logging.getLogger("quiet").warning("heard")
    finally:
        logs.configure(level=settings.LOG_LEVEL, pretty=settings.LOG_FORMAT == "pretty", stream=sys.stderr)

    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["heard"]


def test_pretty_lines_are_for_people(lines: Lines) -> None:
    stream = io.StringIO()
    logs.configure(level="info", pretty=True, stream=stream)

    logging.getLogger("x").info("hello", extra={"count": 3})

    assert "hello" in stream.getvalue()
    assert "count=3" in stream.getvalue()
