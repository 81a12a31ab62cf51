"""The schema only ever grows: what takes something away from clients is noticed."""

from __future__ import annotations

import copy
import json

import pytest
from django.core.management import CommandError, call_command

from scheduler_project.lib.rest.schema import document
from scheduler_project.lib.rest.schema_diff import losses
from tests.processes import ROOT

COMMITTED = ROOT / "docs" / "openapi.json"


def _changed(change) -> list[str]:
    """What is lost when the schema is changed like that."""
    new = copy.deepcopy(document())
    change(new)
    return losses(document(), new)


def _shape(new, name):
    return new["components"]["schemas"][name]


def _drop_operation(new):
    del new["paths"]["/api/jobs/{job_id}/cancel"]["post"]


def _rename_path(new):
    new["paths"]["/api/tasks"] = new["paths"].pop("/api/jobs")


def _rename_operation(new):
    new["paths"]["/api/jobs"]["get"]["operationId"] = "jobs_all"


def _drop_answer(new):
    del new["paths"]["/api/jobs"]["post"]["responses"]["200"]


def _drop_answered_field(new):
    del _shape(new, "Job")["properties"]["progress_note"]


def _rename_answered_field(new):
    fields = _shape(new, "Receipt")["properties"]
    fields["state"] = fields.pop("status")


def _make_answered_field_null(new):
    _shape(new, "Job")["properties"]["attempt"]["type"] = ["integer", "null"]


def _make_answered_field_optional(new):
    _shape(new, "Job")["required"].remove("attempt")


def _drop_taken_field(new):
    del _shape(new, "JobInput")["properties"]["priority"]


def _need_a_field(new):
    _shape(new, "JobInput")["required"].append("priority")


def _narrow_a_field(new):
    _shape(new, "JobInput")["properties"]["max_attempts"]["type"] = "integer"


def _drop_a_choice(new):
    _shape(new, "ResolveInput")["properties"]["action"]["enum"].pop()


def _drop_parameter(new):
    get = new["paths"]["/api/jobs"]["get"]
    get["parameters"] = [p for p in get["parameters"] if p["name"] != "status"]


def _need_a_parameter(new):
    new["paths"]["/api/jobs"]["get"]["parameters"][0]["required"] = True


TAKES_AWAY = [
    _drop_operation, _rename_path, _rename_operation, _drop_answer, _drop_answered_field, _rename_answered_field,
    _make_answered_field_null, _make_answered_field_optional, _drop_taken_field, _need_a_field, _narrow_a_field,
    _drop_a_choice, _drop_parameter, _need_a_parameter,
]  # fmt: skip


@pytest.mark.parametrize("change", TAKES_AWAY)
def test_what_takes_something_away_is_noticed(change, tmp_path):
    assert _changed(change) != []


def _add_operation(new):
    new["paths"]["/api/new"] = copy.deepcopy(new["paths"]["/api/jobs"])


def _add_answered_field(new):
    _shape(new, "Job")["properties"]["mood"] = {"type": "string"}
    _shape(new, "Job")["required"].append("mood")


def _add_taken_field(new):
    _shape(new, "JobInput")["properties"]["mood"] = {"type": "string"}


def _add_answer(new):
    new["paths"]["/api/jobs"]["post"]["responses"]["418"] = {"description": "teapot"}


@pytest.mark.parametrize("change", [_add_operation, _add_answered_field, _add_taken_field, _add_answer])
def test_additions_are_no_loss(change):
    assert _changed(change) == []


def test_the_command_refuses_what_takes_something_away(tmp_path):
    old = copy.deepcopy(document())
    old["paths"]["/api/gone"] = old["paths"]["/api/jobs"]
    file = tmp_path / "old.json"
    file.write_text(json.dumps(old), encoding="utf-8")

    with pytest.raises(CommandError, match="GET /api/gone: is gone"):
        call_command("openapi", against=file)
    call_command("openapi", against=COMMITTED)
