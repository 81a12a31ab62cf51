"""The page with the organization's egress lists."""

from __future__ import annotations

from orgs.models import MAX_EGRESS_ENTRIES, AuditEntry, Organization
from tests.web.forms import found_in


def seal_on(client, path):
    return found_in(r'name="seal" value="(\w+)"', client.get(path).content.decode())


def test_the_lists_are_set_entry_by_line(signed_in, home, queue, organization):
    client, path = signed_in("manager"), f"{home}settings/egress"
    lists = {"egress_allow": "*.Example.com\r\n\r\n 203.0.113.0/24 ", "egress_deny": "::1"}
    answer = client.post(path, {**lists, "seal": seal_on(client, path)}, follow=True)

    organization.refresh_from_db()
    assert (organization.egress_allow, organization.egress_deny) == (["*.example.com", "203.0.113.0/24"], ["::1/128"])
    assert "*.example.com\n203.0.113.0/24</textarea>" in answer.content.decode()
    [entry] = AuditEntry.objects.filter(action="organization.change_egress")
    assert entry.before == {"egress_allow": [], "egress_deny": []}
    assert "organization.change_egress" in answer.content.decode()


def test_a_bad_entry_is_named_by_its_line(signed_in, home, queue, organization):
    client, path = signed_in("manager"), f"{home}settings/egress"
    sent = {
        "egress_allow": "fine.example.com",
        "egress_deny": "a.com\n\n10.0.0.1/8\n<b>",
        "seal": seal_on(client, path),
    }
    answer = client.post(path, sent)

    html = answer.content.decode()
    assert answer.status_code == 422
    assert "Line 3, 10.0.0.1/8: " in html
    assert "Line 4, &lt;b&gt;: " in html
    assert "fine.example.com</textarea>" in html  # what was typed is still there
    too_many = client.post(path, {**sent, "egress_deny": "a.com\n" * (MAX_EGRESS_ENTRIES + 1)})
    assert f"at most {MAX_EGRESS_ENTRIES} entries" in too_many.content.decode()
    organization.refresh_from_db()
    assert (organization.egress_allow, organization.egress_deny) == ([], [])


def test_who_comes_late_sees_what_the_lists_are_now(signed_in, home, queue, organization):
    client, path = signed_in("manager"), f"{home}settings/egress"
    seal = seal_on(client, path)
    Organization.objects.filter(pk=organization.pk).update(egress_deny=["b.example.com"])
    answer = client.post(path, {"egress_allow": "", "egress_deny": "", "seal": seal})

    assert answer.status_code == 409
    assert "b.example.com</textarea>" in answer.content.decode()
    assert Organization.objects.get(pk=organization.pk).egress_deny == ["b.example.com"]
