"""Whatever goes wrong: the envelope, the right status, a request id, and no trace."""

from __future__ import annotations

import json
import logging
import re

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client
from rest_framework.exceptions import Throttled
from structlog.contextvars import get_contextvars

from scheduler_project.lib.rest.errors import exception_handler
from tests.personas import Api

ID = re.compile(r"[0-9a-f-]{36}")


def _is_enveloped(answer, status: int, code: str) -> None:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error", "message", "details"}
    assert body["error"] == code
    assert body["message"]
    assert all(set(detail) == {"field", "message"} for detail in body["details"])
    assert answer["X-Request-Id"]
    assert b"Traceback" not in answer.content


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"7",
        b"\xff\xfe",
        b'{"\xff": 1}',
        b"\xef\xbb\xbf{}",
        b'{"email": NaN}',
        b'{"email": -Infinity}',
        b'{"email": 1e999}',
        b'{"email": "a", "email": "b"}',
        b'{"x": ' + b"9" * 4_301 + b"}",
        b'{"x": ' + b"[" * 200 + b"1" + b"]" * 200 + b"}",
        b'{"x": ' + b"[" * 100_000 + b"1" + b"]" * 100_000 + b"}",
        b'{"x": ' * 100_000 + b"1" + b"}" * 100_000,
        b'{"\\ud83d": 1}',
        b'{"' + b"k" * 100_000 + b'": 1}',
    ],
    ids=lambda raw: raw[:12].decode("latin-1") + f"-{len(raw)}",
)
def test_bodies_that_are_no_strict_json_are_a_400(anonymous, raw):
    answer = anonymous.send("post", "auth/login", raw)

    assert answer.status_code == 400
    assert answer.json()["error"] in {"bad_request", "validation_error"}
    assert len(answer.content) < 10_000


def test_a_body_over_the_limit_is_a_413(anonymous, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000

    _is_enveloped(anonymous.send("post", "auth/login", b'{"email": "' + b"a" * 1_000 + b'"}'), 413, "bad_request")


def test_form_bodies_are_a_415(anonymous):
    answer = anonymous.send("post", "auth/login", "email=a", Content_Type="application/x-www-form-urlencoded")

    _is_enveloped(answer, 415, "bad_request")


def test_other_methods_are_a_405_that_names_the_right_ones(as_member):
    answer = as_member.send("put", "jobs", "{}")

    _is_enveloped(answer, 405, "bad_request")
    assert answer["Allow"] == "GET, POST, HEAD, OPTIONS"
    _is_enveloped(as_member.send("options", "jobs"), 405, "bad_request")


def test_html_is_not_offered(as_member):
    as_member.headers["Accept"] = "text/html"

    _is_enveloped(as_member.get("jobs"), 406, "bad_request")


@pytest.mark.parametrize("path", ["nothing", "jobs/not-a-uuid", "jobs/", "jobs/1/2/3/4", "%00", "..%2f"])
def test_unknown_paths_are_a_404(as_member, path):
    _is_enveloped(as_member.get(path), 404, "not_found")


def test_pages_outside_the_api_keep_the_plain_404(client):
    answer = client.get("/nothing")

    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")
    assert answer["X-Request-Id"]


def test_a_foreign_host_is_an_enveloped_400(settings):
    settings.ALLOWED_HOSTS = ["ours.example"]

    _is_enveloped(Client().get("/api/jobs", headers={"Host": "evil.example"}), 400, "bad_request")


def test_without_credentials_the_answer_is_a_401_that_names_the_scheme(anonymous):
    answer = anonymous.get("jobs")

    _is_enveloped(answer, 401, "unauthorized")
    assert answer["WWW-Authenticate"] == 'Bearer realm="api"'


def test_an_unexpected_error_is_a_500_without_a_trace_and_logged_once(as_member, monkeypatch, caplog):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("jobs.api.jobs.page_of_jobs", broken)
    answer = as_member.get("jobs")

    _is_enveloped(answer, 500, "internal_error")
    assert b"secret detail" not in answer.content
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1


@pytest.mark.parametrize("outage", [OperationalError("server closed the connection"), InterfaceError("is closed")])
def test_a_database_outage_in_a_view_is_a_503(as_member, monkeypatch, outage):
    def down(*args, **kwargs):
        raise outage

    monkeypatch.setattr("jobs.api.jobs.page_of_jobs", down)
    answer = as_member.get("jobs")

    _is_enveloped(answer, 503, "internal_error")
    assert int(answer["Retry-After"]) > 0
    assert b"server closed" not in answer.content


def test_a_database_outage_while_authenticating_is_a_503(as_member, monkeypatch):
    def down(*args, **kwargs):
        raise OperationalError("gone")

    monkeypatch.setattr("accounts.authentication.verify_access", down)

    _is_enveloped(as_member.get("jobs"), 503, "internal_error")


def test_a_database_outage_outside_the_api_is_a_page_with_503(db, client, monkeypatch):
    def down(*args, **kwargs):
        raise OperationalError("gone")

    monkeypatch.setattr("django.contrib.admin.sites.AdminSite.login", down)
    monkeypatch.setattr("django.contrib.admin.sites.AdminSite.has_permission", down)
    answer = client.get("/admin/")

    assert answer.status_code == 503
    assert answer["Retry-After"]
    assert answer["Content-Type"].startswith("text/html")
    assert answer["X-Request-Id"] in answer.content.decode()
    assert answer["X-Request-Id"]


def test_a_database_outage_in_a_middleware_is_a_503(db, client, monkeypatch):
    def down(*args, **kwargs):
        raise OperationalError("gone")

    monkeypatch.setattr("django.contrib.sessions.middleware.SessionMiddleware.process_response", down)
    client.raise_request_exception = False

    assert client.get("/healthz").status_code == 200
    assert client.get("/admin/login/").status_code == 503
    assert client.get("/api/jobs").json()["error"] == "internal_error"


@pytest.mark.parametrize("given", ["abc", "A-1_b.c", "x" * 64])
def test_a_safe_request_id_is_kept(anonymous, given):
    anonymous.headers["X-Request-Id"] = given

    assert anonymous.get("jobs")["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "a\u00e9", "<script>", "a\tb"])
def test_an_unsafe_request_id_is_replaced(anonymous, given):
    anonymous.headers["X-Request-Id"] = given

    assert ID.fullmatch(anonymous.get("jobs")["X-Request-Id"])


def test_the_request_id_stands_in_the_log(as_member, monkeypatch, caplog):
    def broken(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("jobs.api.jobs.page_of_jobs", broken)
    as_member.headers["X-Request-Id"] = "trace-me"
    as_member.get("jobs")

    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "trace-me" in json.dumps(record.msg, default=str)


def test_refused_requests_are_logged_with_their_id(anonymous, monkeypatch):
    seen = []
    monkeypatch.setattr(
        logging.getLogger("django.request"), "filter", lambda record: seen.append(dict(get_contextvars()))
    )
    anonymous.headers["X-Request-Id"] = "refused-1"
    anonymous.get("jobs")

    assert [fields["request_id"] for fields in seen] == ["refused-1"]


def test_throttled_requests_say_when_to_come_back():
    answer = exception_handler(Throttled(wait=2.4), {})

    assert (answer.status_code, answer.data["error"], answer["Retry-After"]) == (429, "too_many_requests", "3")


def test_unknown_fields_and_parameters_are_refused_by_name(as_member, queue):
    body = as_member.post("jobs", {"queue_id": str(queue.pk), "job_type": "noop", "shedule_at": 1})
    query = as_member.get("jobs", staus="queued")
    twice = as_member.send("get", "jobs?status=queued&status=running")

    for answer, field in ((body, "shedule_at"), (query, "staus"), (twice, "status")):
        _is_enveloped(answer, 400, "validation_error")
        assert answer.json()["details"][0]["field"] == field


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=-1", "limit=x", "limit=1.0", "limit=%D9%A3", "limit=", "offset=-1", "offset=10001"],
)
def test_pages_are_bounded(as_member, query):
    answer = as_member.send("get", f"jobs?{query}")

    _is_enveloped(answer, 400, "validation_error")
    assert answer.json()["details"][0]["field"] == query.split("=")[0]


def test_health_needs_no_database(db, client, monkeypatch):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/healthz")["X-Request-Id"]
    assert client.get("/readyz").status_code == 200


def test_not_ready_says_why(db, client, monkeypatch):
    from scheduler_project.lib import database

    monkeypatch.setattr(database, "_is_migrated", False)
    monkeypatch.setattr("django.db.migrations.executor.MigrationExecutor.migration_plan", lambda *_: [1, 2])
    pending = client.get("/readyz")
    monkeypatch.setattr(connection, "is_usable", lambda: False)
    monkeypatch.setattr(connection, "close", lambda: None)
    gone = client.get("/readyz")

    assert pending.status_code == gone.status_code == 503
    assert "2 migrations" in pending.json()["reason"]
    assert "does not answer" in gone.json()["reason"]


def test_the_migrations_are_compared_until_they_were_complete(db, client, monkeypatch):
    from scheduler_project.lib import database

    monkeypatch.setattr(database, "_is_migrated", False)
    assert client.get("/readyz").status_code == 200
    monkeypatch.setattr(database, "MigrationExecutor", None)

    assert client.get("/readyz").status_code == 200


def test_the_root_leads_to_the_login_page(client):
    assert client.get("/")["Location"] == "/login?next=/"


def test_keys_in_the_query_string_are_no_credentials(anonymous):
    assert Api().get("jobs", api_key="pk_live_x").status_code == 401
