"""Texts of strangers do no harm: every page, every question that names something, and what is searched for."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

from dlq.models import DeadLetter
from jobs.models import AlertRule, CircuitBreaker, EventSubscription, Job, JobBatch, Operation, ScheduledJob, Worker
from orgs.models import ApiKey, OrganizationMember, WebhookSecret
from queues.models import Queue, RetryPolicy
from tests.access.test_pages import WALK
from tests.browser.furnished import furnish
from tests.web.hostile import HOSTILE, spoil

MODELS: dict[str, Any] = {
    "queue_id": Queue, "policy_id": RetryPolicy, "schedule_id": ScheduledJob, "worker_id": Worker,
    "batch_id": JobBatch, "breaker_id": CircuitBreaker, "member_id": OrganizationMember, "key_id": ApiKey,
    "secret_id": WebhookSecret, "rule_id": AlertRule, "subscription_id": EventSubscription, "operation_id": Operation,
}  # fmt: skip
#: Where what is typed comes back.
SEARCHED = ("queues?q=", "jobs?q=", "jobs?type=", "dead-letter?view=list&type=", "scheduled-jobs?q=", "workers?q=",
            "workers?show=lost&q=", "retry-policies?q=", "batches?q=", "circuit-breakers?q=", "audit-log?actor=",
            "audit-log?action=", "audit-log?object=", "settings/members?q=", "jump?q=")  # fmt: skip
MOST_BYTES = 1_500_000
FILES = ("jobs/<job_id>/payload", "jobs/export")
_TURNS = re.compile("[\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
#: What people type into holds exactly what is stored, or saving would change it.
_TYPED = re.compile(r"<input[^>]*>|<textarea.*?</textarea>", re.DOTALL)


@pytest.fixture
def spoilt(queue, owner):
    """The ids that stand in paths."""
    furnish(queue, owner)
    dead = DeadLetter.objects.order_by("pk")[0]
    spoil(queue.project, Job.objects.get(pk=dead.job_id))
    ids = {name: model.objects.order_by("pk")[0].pk for name, model in MODELS.items()}
    return {**ids, "job_id": dead.job_id, "letter_id": dead.pk}


def _filled(path, ids):
    for name, value in ids.items():
        path = path.replace(f"<{name}>", str(value))
    return path


def faults_of(answer, where):
    """What is wrong with an answer, in words; nothing is how it should be."""
    html = answer.content.decode()
    if answer.status_code >= 500 or len(answer.content) > MOST_BYTES:
        return [f"{where}: {answer.status_code}, {len(answer.content)} bytes"]
    shown = _TYPED.sub("", html)
    # What may be written from right to left stands on its own; a title and an option can hold no markup.
    apart = re.sub(r"<bdi[^>]*>.*?</bdi>|<title>.*?</title>|<option.*?</option>|<[^>]*>", "", shown, flags=re.DOTALL)
    found = {"markup": re.search("<svg onload", html), "control": _CONTROL.search(shown),
             "turns": _TURNS.search(shown), "not isolated": re.search("שלום", apart)}  # fmt: skip
    return [
        f"{where}: {kind}: {match.string[max(0, match.start() - 120) : match.end() + 20]!r}"
        for kind, match in found.items()
        if match
    ]


def test_every_page_shows_them_harmlessly(signed_in, home, spoilt):
    client, faults, seen = signed_in("owner"), [], 0
    paths = [path for method, path in WALK if method == "GET" and path not in FILES]
    for path in paths:
        answer = client.get(home + _filled(path, spoilt))
        assert answer.status_code == 200, path
        faults += faults_of(answer, path)
        seen += 1
    for path in ("", "jobs", "queues", "jobs/<job_id>"):  # the parts that are asked for again
        faults += faults_of(client.get(home + _filled(path, spoilt), headers={"HX-Request": "true"}), path)
    assert seen > 35
    assert not faults, "\n".join(faults)


def test_every_question_and_refusal_shows_them_harmlessly(signed_in, home, spoilt):
    client, faults = signed_in("owner"), []
    names = ("name", "reason", "email", "role", "job_type", "payload", "cron_expression", "timezone", "url", "types",
             "egress_deny", "group", "since", "until", "q", "new-name")  # fmt: skip
    sent = dict.fromkeys(names, HOSTILE) | {"decision": "requeued", "action": "cancel", "all": "1", "overlap_secs": "0"}
    for method, path in WALK:
        if method == "POST":
            faults += faults_of(client.post(home + _filled(path, spoilt), sent, follow=True), f"POST {path}")
    assert not faults, "\n".join(faults)


def test_what_is_searched_for_comes_back_harmlessly(signed_in, home, spoilt):
    client, faults = signed_in("owner"), []
    for path in SEARCHED:
        faults += faults_of(client.get(home + path + quote(HOSTILE), follow=True), path)
    assert not faults, "\n".join(faults)


def test_what_is_kept_as_a_file_is_no_page(signed_in, home, spoilt):
    client = signed_in("owner")
    for path in (*FILES, "jobs/export?format=ndjson"):
        answer = client.get(home + _filled(path, spoilt))
        assert answer["Content-Disposition"].startswith("attachment; ")
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert not answer["Content-Type"].startswith("text/html")
