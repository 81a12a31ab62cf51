"""Pages: budget, fragments, hostile names, and actions that work without a script."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from dlq.models import DeadLetter
from jobs.decisions import Failed, Succeeded
from jobs.models import Operation, ScheduledJob
from jobs.models.worker import Worker
from jobs.services.statistics import fold_all, look_at_all_queues
from orgs.models import AuditEntry
from queues.models import Queue
from scheduler_project.lib.web.pages import VERSION_HEADER
from tests.factories import claim_one, end, job_in, make_job, make_project, make_queue

HOSTILE = "<svg onload=alert(1)>\"'&\u202eevil 💥"
BUDGET = 12


@pytest.fixture
def pages(home, queue):
    return [
        home,
        f"{home}?range=24h",
        f"{home}queues",
        f"{home}queues/new",
        f"{home}queues/{queue.pk}",
        f"{home}jump?q=a",
    ]


def test_every_page_stays_in_its_query_budget(signed_in, pages, queue, project, django_assert_max_num_queries):
    for _ in range(5):
        job_in("dead_letter", make_queue(project))
        make_job(queue)
    client = signed_in("owner")
    for page in pages:
        with django_assert_max_num_queries(BUDGET):
            assert client.get(page).status_code == 200, page


@pytest.mark.parametrize("path", ["jobs/new", "scheduled-jobs/new", "scheduled-jobs", "jobs", "dead-letter?view=list"])
def test_the_names_of_queues_are_read_once(signed_in, home, queue, path):
    client = signed_in("owner")
    with CaptureQueriesContext(connection) as asked:
        html = client.get(home + path).content.decode()

    assert f'<option value="{queue.pk}"' in html
    assert sum('"queues"."name"' in one["sql"] and 'FROM "queues"' in one["sql"] for one in asked) == 1


def test_a_live_region_is_answered_with_204_until_something_changes(signed_in, home, queue):
    client = signed_in("viewer")
    first = client.get(f"{home}queues", headers={"HX-Request": "true"})
    known = {"HX-Request": "true", VERSION_HEADER: first[VERSION_HEADER]}

    assert b"<html" not in first.content
    assert client.get(f"{home}queues", headers=known).status_code == 204
    make_job(queue)
    assert client.get(f"{home}queues", headers=known).status_code == 200


def test_hostile_names_are_text(signed_in, home, queue, project):
    Queue.objects.filter(pk=queue.pk).update(name=HOSTILE, is_paused=True, paused_reason=HOSTILE)
    make_job(queue, job_type="<svg/onload=alert(1)>")
    ScheduledJob.objects.create(
        project=project, queue=queue, name=HOSTILE, cron_expression="* * * * *", job_type="x", last_error=HOSTILE,
        last_error_at=Now(),
    )  # fmt: skip
    Worker.objects.create(hostname=HOSTILE, pid=1, version="1", max_concurrency=1)
    client = signed_in("owner")
    for page in (home, f"{home}queues", f"{home}queues/{queue.pk}", f"{home}jump?q=svg"):
        html = client.get(page).content.decode()
        assert "<svg onload" not in html, page
        # A form gives back exactly what is stored.
        assert "\u202e" not in re.sub(r'<input type="text"[^>]*>', "", html), page
        assert "&lt;svg onload" in html, page


def test_no_page_has_inline_script_or_style(signed_in, pages):
    for page in pages:
        answer = signed_in("owner").get(page)
        html = answer.content.decode()
        assert "'unsafe-" not in answer["Content-Security-Policy"]
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html), page


def test_pause_and_undo_without_a_script(signed_in, home, queue):
    client, path = signed_in("manager"), f"{home}queues/{queue.pk}"
    shown = client.post(f"{path}/pause", {"reason": "deploy"}, follow=True)
    queue.refresh_from_db()

    assert (queue.is_paused, queue.paused_reason) == (True, "deploy")
    assert f'action="{path}/resume"' in shown.content.decode()
    client.post(f"{path}/resume")
    queue.refresh_from_db()
    assert not queue.is_paused
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["queue.pause", "queue.resume"]


def _settings(client, path):
    html = client.get(path).content.decode()
    return {"seal": html.split('name="seal" value="')[1][:16], "name": "n", "priority": "3",
            "visibility_timeout_secs": "60"}  # fmt: skip


def test_an_edit_over_somebody_elses_is_refused(signed_in, home, queue):
    client, path = signed_in("manager"), f"{home}queues/{queue.pk}"
    sent = _settings(client, path)
    Queue.objects.filter(pk=queue.pk).update(max_concurrency=7)

    assert client.post(f"{path}/edit", sent).status_code == 409
    assert client.post(f"{path}/edit", _settings(client, path)).status_code == 302
    queue.refresh_from_db()
    assert (queue.name, queue.priority) == ("n", 3)


@pytest.mark.parametrize("bad", [{"priority": "1e9"}, {"rate_limit": "5"}, {"name": "a/b"}, {"name": "\x00"}, {}])
def test_bad_settings_are_a_422_and_never_a_500(signed_in, home, queue, bad):
    client, path = signed_in("manager"), f"{home}queues/{queue.pk}"
    sent = {**_settings(client, path), **(bad or {"priority": ""})}

    assert client.post(f"{path}/edit", sent).status_code == 422


def _token(answer):
    return answer.content.decode().split('name="confirm_token" value="')[1].split('"')[0]


def test_delete_needs_the_token_and_the_typed_name(signed_in, home, queue):
    client, path = signed_in("manager"), f"{home}queues/{queue.pk}/delete"
    token = _token(client.post(path))

    assert client.post(path, {"confirm_token": token, "typed": "wrong"}).status_code == 422
    assert client.post(path, {"confirm_token": "made up", "typed": queue.name}).status_code == 422
    assert client.post(path, {"confirm_token": token, "typed": queue.name}).status_code == 302
    assert not Queue.objects.filter(pk=queue.pk, deleted_at=None).exists()


def test_a_token_is_good_for_one_person_action_and_target(signed_in, home, queue, project):
    mine, path = signed_in("manager"), f"{home}queues/{queue.pk}"
    token = {"confirm_token": _token(mine.post(f"{path}/delete")), "typed": queue.name}
    twin = make_queue(project, name=queue.name + "2")

    assert signed_in("owner").post(f"{path}/delete", token).status_code == 422
    assert mine.post(f"{path}/purge", token).status_code == 422
    assert mine.post(f"{home}queues/{twin.pk}/delete", {**token, "typed": twin.name}).status_code == 422


def test_a_purge_is_operations_of_this_queue(signed_in, home, queue):
    make_job(queue)
    client, path = signed_in("manager"), f"{home}queues/{queue.pk}/purge"
    client.post(path, {"confirm_token": _token(client.post(path)), "typed": queue.name})

    made = Operation.objects.values_list("action", flat=True)
    assert list(made) == ["cancel", "cancel"]


def test_a_queue_of_another_project_of_mine_is_not_on_this_ones_pages(signed_in, home, organization):
    other = make_queue(make_project(organization))

    assert signed_in("owner").get(f"{home}queues/{other.pk}").status_code == 404


def test_the_dashboard_says_what_needs_attention(signed_in, home, queue):
    make_job(queue)
    Queue.objects.filter(pk=queue.pk).update(is_paused=True)
    job_in("dead_letter", make_queue(queue.project))
    html = signed_in("viewer").get(home).content.decode()

    assert DeadLetter.objects.count() == 1
    for text in ("is paused with 1 ready jobs", "No scheduler leads", "No worker is alive", "1 dead letter waits"):
        assert text in html


def test_a_chart_without_data_says_so(signed_in, home, queue, project):
    client = signed_in("viewer")
    assert client.get(home).content.decode().count('class="nothing"') == 5
    end(claim_one(make_job(queue).queue), Succeeded())
    make_job(queue)
    fold_all()
    look_at_all_queues()
    html = client.get(home).content.decode()
    assert 'class="nothing"' not in html
    assert "2 submitted in 1h" in html


def test_a_queues_row_says_what_ended_lately(signed_in, home, queue):
    for verdict in (Succeeded(), Failed("no")):
        end(claim_one(make_job(queue).queue), verdict)
    fold_all()
    html = signed_in("viewer").get(f"{home}queues").content.decode()
    assert '<span>2 <span class="is-bad">1 failed</span></span>' in html
    assert f"{home}jobs?queue={queue.pk}" in signed_in("viewer").get(f"{home}queues/{queue.pk}").content.decode()


def test_the_palette_finds_by_name_and_offers_a_search(signed_in, home, nightly):
    html = signed_in("viewer").get(f"{home}jump?q=nightl").content.decode()
    assert f"{home}scheduled-jobs/{nightly.pk}" in html
    assert f"{home}jobs?q=nightl" in html


def test_a_reason_that_can_not_be_shown_is_refused(signed_in, home, queue):
    path = f"{home}queues/{queue.pk}/pause"
    html = signed_in("owner").post(path, {"reason": "\x1b[31m"}, follow=True).content.decode()
    assert "printable characters" in html
    queue.refresh_from_db()
    assert not queue.is_paused


def test_a_failure_leads_to_the_jobs_that_have_it(signed_in, home, queue):
    job_in("dead_letter", queue)
    client = signed_in("viewer")
    html = client.get(home).content.decode()
    assert f"{home}jobs?error=boom" in html
    assert 'id="j-' in client.get(f"{home}jobs?error=boom").content.decode()


@pytest.mark.parametrize(("sent", "place"), [("queues?q=q", "queues?q=q"), ("https://evil.example", ""), ("", "")])
def test_a_pause_leads_back_to_where_it_was_asked_for(signed_in, home, queue, sent, place):
    next_ = home + sent if sent.startswith("queues") else sent
    answer = signed_in("owner").post(f"{home}queues/{queue.pk}/pause", {"next": next_})
    assert answer.url == home + (place or f"queues/{queue.pk}")
