"""The schema: committed as it is, whole, true to the code."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern, URLResolver
from drf_spectacular.validation import validate_schema
from jsonschema import Draft202012Validator

from scheduler_project.lib.rest.describe import description_of
from scheduler_project.lib.rest.schema import as_text, document
from scheduler_project.lib.rest.views import read_body
from scheduler_project.urls import api as api_patterns
from tests.processes import ROOT

COMMITTED = ROOT / "docs" / "openapi.json"
METHODS = ("get", "post", "put", "patch", "delete")


def _operations():
    return [(path, method, op) for path, item in document()["paths"].items() for method, op in item.items()]


def _views(patterns: Any = api_patterns, prefix: str = "/api/"):
    for pattern in patterns:
        route = prefix + re.sub(r"<uuid:(\w+)>", r"{\1}", str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from _views(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            view: Any = pattern.callback.__dict__["view_class"]
            yield from ((route, method, view) for method in METHODS if hasattr(view, method))


def test_the_committed_file_is_this_schema():
    assert COMMITTED.read_text(encoding="utf-8") == as_text(), "run: manage.py openapi > docs/openapi.json"
    call_command("openapi", check=COMMITTED)


def test_it_is_openapi_3_1():
    validate_schema(document())
    assert document()["openapi"].startswith("3.1")


def test_every_path_and_method_is_described():
    assert {(route, method) for route, method, _ in _views()} == {(path, method) for path, method, _ in _operations()}
    assert [(route, method) for route, method, view in _views() if description_of(view, method) is None] == []


def test_every_operation_has_a_name_of_its_own():
    names = [op["operationId"] for _, _, op in _operations()]

    assert len(set(names)) == len(names)
    assert {
        "jobs_create",
        "jobs_list",
        "jobs_get",
        "jobs_cancel",
        "queues_update",
        "auth_login",
        "worker_claim",
    } <= set(names)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)+", name) for name in names)


@pytest.mark.parametrize(("path", "method", "operation"), _operations())
def test_every_operation_has_examples_and_error_answers(path, method, operation):
    needed = {"400", "401", "403", "404", "429", "500", "503"} | (set() if method == "get" else {"409", "415"})
    assert needed <= set(operation["responses"])
    assert any(status.startswith("2") for status in operation["responses"])
    for status, answer in operation["responses"].items():
        if "content" in answer:
            media = answer["content"]["application/json"]
            _check_examples(media, f"{path} {method} {status}")
    if "requestBody" in operation:
        _check_examples(operation["requestBody"]["content"]["application/json"], f"{path} {method}")


def _check_examples(media: dict[str, Any], at: str) -> None:
    assert media["examples"], at
    checker = Draft202012Validator({**media["schema"], "components": document()["components"]})
    for example in media["examples"].values():
        errors = [f"{at}: {list(e.absolute_path)}: {e.message}" for e in checker.iter_errors(example["value"])]
        assert errors == []


@pytest.mark.parametrize(("route", "method", "view"), list(_views()))
def test_every_example_of_a_body_is_accepted_by_its_shape(route, method, view):
    said = description_of(view, method)
    if said is None or said.body is None:
        return
    media = document()["paths"][route][method]["requestBody"]["content"]["application/json"]
    for example in media["examples"].values():
        shape = said.body(data=example["value"], partial=said.is_patch)
        assert shape.is_valid(), shape.errors


def test_reading_by_another_shape_than_was_said_is_a_fault(rf):
    from jobs.api.jobs import JobsView
    from jobs.api.serializers import CancelInput

    view = JobsView()
    request = view.initialize_request(rf.post("/api/jobs", {}, content_type="application/json"))
    request.parser_context["view"] = view

    with pytest.raises(TypeError, match="@describe"):
        read_body(request, CancelInput)


# -- served ----------------------------------------------------------------------------------------------------
def test_everybody_may_read_it(db):
    answer = Client().get("/api/schema")

    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer.json() == json.loads(as_text())


def test_the_page_needs_no_inline_script_and_nothing_from_elsewhere(db):
    page, script = Client().get("/api/docs"), Client().get("/api/docs?script")

    html = page.content.decode()
    assert page.status_code == script.status_code == 200
    assert "script-src 'self'" in page["Content-Security-Policy"]
    assert re.findall(r"<script(?![^>]*src=)", html) == []
    assert "<style" not in html
    assert re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", html) == []
    assert "/api/schema" in script.content.decode()
    for link in re.findall(r'(?:src|href)="(/static/[^"]+)"', html):
        file: Any = Client().get(link)
        assert file.status_code == 200, link
        file.close()
