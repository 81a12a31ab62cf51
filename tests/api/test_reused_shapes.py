"""The checker of a shape serves one request after another: nothing of one is left for the next."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from jobs.api.serializers import JobInput
from scheduler_project.lib.rest.views import read_body

QUEUE_ID = "01890a5d-ac96-774b-bcce-b302099a8057"


def said(body: dict[str, Any]) -> Request:
    found: Any = Request(APIRequestFactory().post("/", body, format="json"))
    found._full_data = body
    asked: Request = found
    return asked


def test_a_refused_body_leaves_no_error_behind() -> None:
    with pytest.raises(ValidationError) as refusal:
        read_body(said({"queue_id": QUEUE_ID, "job_type": 7, "bogus": 1}), JobInput)
    assert set(refusal.value.detail) == {"job_type", "bogus"}

    assert read_body(said({"queue_id": QUEUE_ID, "job_type": "noop"}), JobInput)["job_type"] == "noop"


def test_what_one_body_said_is_not_in_the_next() -> None:
    first = read_body(said({"queue_id": QUEUE_ID, "job_type": "noop", "payload": {"a": 1}, "priority": 5}), JobInput)
    first["payload"]["b"] = 2
    second = read_body(said({"queue_id": QUEUE_ID, "job_type": "noop"}), JobInput)

    assert (second["payload"], second["priority"]) == ({}, 0)
    second["payload"]["c"] = 3
    assert read_body(said({"queue_id": QUEUE_ID, "job_type": "noop"}), JobInput)["payload"] == {}
