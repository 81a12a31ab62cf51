"""Canary and pace on the pages: asked for where the question is, shown while it goes on, without any script."""

from __future__ import annotations

import pytest

from jobs.decisions import Failed, Succeeded
from jobs.models import Operation
from jobs.services.operation_steps import run_step
from tests.factories import claim_one, end, job_in
from tests.web.forms import found_in, token_of
from tests.web.test_dead_letters import confirmed


@pytest.fixture
def dead(queue):
    return [job_in("dead_letter", queue, max_attempts=1).job for _ in range(4)]


def read(client, path):
    return client.get(path).content.decode()


@pytest.mark.parametrize("path", ["dead-letter/resolve", "jobs/act"])
def test_the_question_asks_how_carefully(signed_in, home, dead, path):
    client, fields = signed_in("member"), {"all": "1", "decision": "requeued", "action": "retry"}
    asked = client.post(home + path, fields)
    assert 'name="canary"' in asked.content.decode()
    if 'name="frozen_at"' in asked.content.decode():
        fields["frozen_at"] = found_in(r'name="frozen_at" value="([^"]*)"', asked.content.decode())
    token = token_of(asked)

    wrong = client.post(home + path, {**fields, "confirm_token": token, "canary": "101", "pace": "x"})
    html = wrong.content.decode()
    assert wrong.status_code == 422
    assert "must be from 1 to 100" in html
    assert "Enter a whole number" in html
    assert html.count('name="canary"') == 1
    assert not Operation.objects.exists()

    right = {"confirm_token": token_of(wrong), "canary": "2", "pace": "30", "pace_per": "hour"}
    assert client.post(home + path, {**fields, **right}).status_code == 302
    one = Operation.objects.get()
    assert (one.canary, one.pace, one.pace_per) == (2, 30, "hour")


def test_nothing_typed_is_as_fast_as_it_goes(signed_in, home, dead):
    confirmed(signed_in("member"), f"{home}dead-letter/resolve", {"all": "1", "decision": "requeued"})
    one = Operation.objects.get()
    assert (one.canary, one.pace) == (None, None)


def test_what_runs_nothing_is_not_asked(signed_in, home, dead):
    client = signed_in("member")
    asked = client.post(f"{home}dead-letter/resolve", {"all": "1", "decision": "discarded"})
    assert 'name="canary"' not in asked.content.decode()


def test_its_page_tells_of_the_canary_while_it_waits_and_when_it_failed(signed_in, home, queue, dead):
    client = signed_in("member")
    fields = {"all": "1", "decision": "requeued"}
    asked = client.post(f"{home}dead-letter/resolve", fields)
    client.post(f"{home}dead-letter/resolve", {**fields, "confirm_token": token_of(asked), "canary": "2"})
    one = Operation.objects.get()
    path = f"{home}operations/{one.pk}"
    while run_step(one.pk) == 0:
        pass

    html = read(client, path)
    assert "waits for its canary" in html
    assert "2 first, the rest once they have completed" in html
    assert html.count(f'href="{home}jobs/') >= 2
    end(claim_one(queue), Succeeded())
    end(claim_one(queue), Failed("<svg onload=alert(1)> no room"))
    run_step(one.pk)
    html = read(client, path)
    assert "Why it stopped" in html
    assert "no room" in html
    assert "<svg onload" not in html
    assert "data-live=" not in html
    listed = read(client, f"{home}operations?show=stopped")
    assert "no room" in listed
    assert listed.count('id="o-') == 1
