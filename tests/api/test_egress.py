"""Where an organization's webhooks may go: lists that its owners and admins set, and that only ever close."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.selectors.project_facts import facts_of_project
from orgs.models import MAX_EGRESS_ENTRIES, AuditEntry, Organization
from tests.personas import Api, field_of


def _patch(api: Api, organization: Organization, **fields: Any) -> Any:
    return api.send("patch", f"organizations/{organization.pk}", json.dumps(fields))


def test_lists_are_set_shown_and_reach_the_handler(manager, organization, project):
    as_manager = Api(manager)
    answer = _patch(as_manager, organization, egress_allow=["*.Example.com", "203.0.113.0/24"], egress_deny=["::1"])

    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert body["egress_allow"] == ["*.example.com", "203.0.113.0/24"]
    assert body["egress_deny"] == ["::1/128"]
    assert as_manager.get(f"organizations/{organization.pk}").json() == body
    facts = facts_of_project(str(project.pk))
    assert (facts.egress_allow, facts.egress_deny) == (("*.example.com", "203.0.113.0/24"), ("::1/128",))
    [entry] = AuditEntry.objects.filter(action="organization.change_egress")
    assert entry.before == {"egress_allow": [], "egress_deny": []}


def test_a_list_that_is_not_sent_stays(as_owner, organization):
    _patch(as_owner, organization, egress_deny=["a.example.com", "A.example.com."])
    body = _patch(as_owner, organization, egress_allow=["b.example.com"]).json()
    assert (body["egress_allow"], body["egress_deny"]) == (["b.example.com"], ["a.example.com"])
    assert _patch(as_owner, organization, egress_deny=[]).json()["egress_deny"] == []


@pytest.mark.parametrize(
    "entry",
    ["", "*", "*.", "a b", "http://a", "a:80", "10.0.0.1/8", "10.0.0.0/33", "1.2.3", "1.2.3.4.5", "0x7f.1",
     "2130706433", "010.0.0.1", "fe80::1%eth0", "a.*.b", "-a.com", "a..b", "münchen.de", "x" * 64 + ".de",
     "[::1]", "a_\u0000"],
)  # fmt: skip
def test_a_bad_entry_is_named_by_its_place(as_owner, organization, entry):
    answer = _patch(as_owner, organization, egress_deny=["fine.example.com", entry])
    assert answer.status_code == 400, answer.content
    assert field_of(answer).startswith("egress_deny")
    assert "1" in field_of(answer)
    organization.refresh_from_db()
    assert organization.egress_deny == []


@pytest.mark.parametrize("value", ["a.com", {"a": 1}, None, [1], [["a"]], ["a"] * (MAX_EGRESS_ENTRIES + 1)])
def test_what_is_no_list_of_texts_is_refused(as_owner, organization, value):
    answer = _patch(as_owner, organization, egress_allow=value)
    assert (answer.status_code, field_of(answer)[:12]) == (400, "egress_allow")


def test_nothing_else_of_the_organization_changes_here(as_owner, organization):
    answer = _patch(as_owner, organization, slug="other")
    assert (answer.status_code, field_of(answer)) == (400, "slug")
