"""Pages of schedules: list, ledger, actions, backfill."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from jobs.decisions import Succeeded
from jobs.models import Job, ScheduledJob, ScheduleFire
from jobs.services.schedules import create_schedule, pause, trigger
from orgs.models import AuditEntry
from scheduler_project.lib.sql import database_now
from tests.factories import claim_one, end, job_in, make_project, make_queue
from tests.web.forms import found_in, token_of
from tests.web.test_pages import HOSTILE

BUDGET = 12
HOUR = timedelta(hours=1)


def fire(schedule, due_at, reason="", job=None, late_ms=0):
    return ScheduleFire.objects.create(
        project_id=schedule.project_id, scheduled_job=schedule, due_at=due_at, reason=reason,
        outcome="fired" if job else "skipped", job_id=job and job.pk, late_ms=late_ms,
    )  # fmt: skip


def test_the_pages_stay_in_their_budget(signed_in, home, project, queue, nightly, django_assert_max_num_queries):
    for number in range(30):
        one = create_schedule(make_queue(project), name=f"s{number}", cron_expression="*/5 * * * *", job_type="noop")
        for _ in range(3):
            trigger(one.pk)
    client, path = signed_in("owner"), f"{home}scheduled-jobs"
    for page in (path, f"{path}?state=trouble", f"{path}/new", f"{path}/{one.pk}", f"{path}/{one.pk}/edit"):
        with django_assert_max_num_queries(BUDGET):
            answer = client.get(page)
        assert answer.status_code == 200
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", answer.content.decode()), page


def test_ticks_say_what_became_of_each_due_time(signed_in, home, queue, nightly):
    now = database_now()
    fire(nightly, now - 3 * HOUR, job=job_in("completed", queue).job)
    fire(nightly, now - 2 * HOUR, job=job_in("dead_letter", make_queue(queue.project)).job)
    fire(nightly, now - HOUR, reason="paused")
    html = signed_in("viewer").get(f"{home}scheduled-jobs").content.decode()

    assert 'aria-label="Last 3 due times: 1 completed, 1 dead letter, 1 skipped: paused"' in html
    assert [m[1] for m in re.finditer(r'<g class="t-(\w+)"', html)] == ["completed", "failed", "skipped"]


def test_filters_and_the_three_kinds_of_empty(signed_in, home, queue):
    client, path = signed_in("viewer"), f"{home}scheduled-jobs"
    assert "There are no schedules yet" in client.get(path).content.decode()
    for name in ("one", "two", "off"):
        create_schedule(queue, name=name, cron_expression="0 3 * * *", job_type="noop")
    ScheduledJob.objects.filter(name="off").update(is_active=False, next_run_at=None)
    pause(ScheduledJob.objects.get(name="two").pk, by=None)

    def names(query):
        return re.findall(r'class="name"[^>]*><bdi>(\w+)', client.get(f"{path}?{query}").content.decode())

    assert names("") == ["off", "one", "two"]
    assert names("state=on") == ["one"]
    assert names("state=paused") == ["two"]
    assert names("state=off") == ["off"]
    assert names("q=tw") == ["two"]
    assert names(f"queue={make_queue(queue.project).pk}") == []
    assert "No schedule fits these filters" in client.get(f"{path}?q=zzz").content.decode()
    assert "All good" in client.get(f"{path}?state=trouble").content.decode()
    ScheduledJob.objects.filter(name="one").update(next_run_at=database_now() - HOUR)
    ScheduledJob.objects.filter(name="two").update(last_error="bad row")
    assert names("state=trouble") == ["one", "two"]


def test_pages_of_the_list_show_each_schedule_once(signed_in, home, queue):
    for number in range(120):
        ScheduledJob.objects.create(
            project=queue.project, queue=queue, name=f"n{number:03}", cron_expression="* * * * *", job_type="x"
        )
    client, path, seen, query = signed_in("viewer"), f"{home}scheduled-jobs", [], ""
    for _ in range(3):
        html = client.get(f"{path}?{query}").content.decode()
        seen += re.findall(r"<bdi>(n\d+)</bdi>", html)
        query = found_in(r'href="\?([^"]*)" rel="next"', html) if len(seen) < 120 else ""
    assert 'rel="next"' not in html

    assert seen == [f"n{number:03}" for number in range(120)]


def test_the_ledger_is_paged_filtered_and_summed_up(signed_in, place, queue, nightly):
    now = database_now()
    done = job_in("completed", queue).job
    for number in range(60):
        fire(nightly, now - number * HOUR, job=done if number % 2 else None, reason="" if number % 2 else "misfire")
    fire(nightly, now - timedelta(minutes=5), job=done, reason="manual")
    fire(nightly, now - timedelta(minutes=30), job=done, late_ms=90_000)
    client = signed_in("viewer")
    html = client.get(place).content.decode()

    assert "31 of 61 promised" in html
    assert "30 missed" in html
    assert html.count('id="f-') == 50
    following = found_in(r'href="\?([^"]*)" rel="next"', html)
    rest = client.get(f"{place}?{following}").content.decode()
    assert rest.count('id="f-') == 12
    assert not set(re.findall(r'id="(f-[^"]+)', html)) & set(re.findall(r'id="(f-[^"]+)', rest))
    assert client.get(f"{place}?outcome=manual").content.decode().count('id="f-') == 1
    assert client.get(f"{place}?outcome=skipped&range=24h").content.decode().count('id="f-') == 12
    assert "had this outcome" in client.get(f"{place}?outcome=backfill").content.decode()


@pytest.mark.parametrize(
    "query", ["after=x", "after=9999-12-31T00:00:00%2B00:00", "range=5y", "outcome=%00", "after=%00"]
)
def test_nonsense_in_the_address_is_ignored(signed_in, home, place, query):
    client = signed_in("viewer")
    assert client.get(f"{place}?{query}").status_code == 200
    assert client.get(f"{home}scheduled-jobs?{query}&q=%00&queue=x&state=%00").status_code == 200


def test_off_and_on_pause_and_resume_can_be_taken_back(signed_in, place, nightly):
    client = signed_in("manager")
    shown = client.post(f"{place}/deactivate", follow=True).content.decode()
    assert f'action="{place}/activate"' in shown
    nightly.refresh_from_db()
    assert (nightly.is_active, nightly.next_run_at) == (False, None)
    client.post(f"{place}/activate")
    client.post(f"{place}/pause", {"reason": "holidays", "until": "2999-01-07T00:00"})
    nightly.refresh_from_db()
    assert (nightly.is_active, nightly.is_paused, nightly.paused_reason) == (True, True, "holidays")
    assert nightly.paused_until == datetime(2999, 1, 7, tzinfo=UTC)
    shown = client.post(f"{place}/resume", follow=True).content.decode()
    assert 'name="reason" value="holidays"' in shown
    assert 'name="until" value="2999-01-07T00:00:00"' in shown
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == [f"scheduled_job.{verb}" for verb in ("deactivate", "activate", "pause", "resume")]


@pytest.mark.parametrize("until", ["yesterday", "2001-01-01T00:00", "0001-01-01T00:00", "9999-12-31T23:59", "\x00"])
def test_a_pause_until_nonsense_is_refused(signed_in, place, nightly, until):
    shown = signed_in("manager").post(f"{place}/pause", {"until": until}, follow=True)

    assert "is-error" in shown.content.decode()
    nightly.refresh_from_db()
    assert not nightly.is_paused


def test_a_member_runs_it_now_and_is_led_back(signed_in, home, place, nightly):
    answer = signed_in("member").post(f"{place}/trigger", {"next": f"{home}scheduled-jobs?q=n"})

    assert answer.url == f"{home}scheduled-jobs?q=n"
    assert Job.objects.get().scheduled_job_id == nightly.pk
    assert signed_in("member").post(f"{place}/trigger", {"next": "https://evil.example/"}).url == place


def test_a_backfill_is_a_dry_run_until_it_is_confirmed(signed_in, place, nightly):
    now = database_now()
    missed = [fire(nightly, now - n * HOUR, reason="misfire") for n in (2, 3)]
    window = {"since": (now - 5 * HOUR).isoformat(), "until": now.isoformat(), "only_missed": "on"}
    client = signed_in("manager")
    asked = client.post(f"{place}/backfill", window)

    assert "2 jobs would be submitted" in asked.content.decode()
    assert Job.objects.count() == 0
    sure = {**window, "confirm_token": token_of(asked)}
    assert client.post(f"{place}/backfill", {**sure, "only_missed": ""}).status_code in (200, 422)
    assert Job.objects.count() == 0
    assert client.post(f"{place}/backfill", sure).status_code == 302
    assert Job.objects.count() == 2
    assert set(ScheduleFire.objects.values_list("reason", flat=True)) == {"backfill"}
    assert len(missed) == ScheduleFire.objects.count()
    again = client.post(f"{place}/backfill", window, follow=True)
    assert "Nothing is to be run" in again.content.decode()


@pytest.mark.parametrize(
    "window",
    [
        {},
        {"since": "x", "until": "y"},
        {"since": "2026-01-02T00:00", "until": "2026-01-01T00:00"},
        {"since": "2020-01-01T00:00", "until": "2999-01-01T00:00"},
        {"since": "1970-01-01T00:00", "until": "2026-01-01T00:00"},
        {"since": "0001-01-01T00:00", "until": "9999-12-31T23:59:59"},
    ],
)
def test_a_bad_window_is_told(signed_in, place, nightly, window):
    shown = signed_in("manager").post(f"{place}/backfill", window, follow=True)

    assert "is-error" in shown.content.decode()
    assert Job.objects.count() == 0


def test_a_delete_leaves_its_ended_jobs_and_refuses_open_ones(signed_in, home, place, queue, nightly):
    trigger(nightly.pk)
    client = signed_in("manager")

    def delete():
        sure = {"confirm_token": token_of(client.post(f"{place}/delete")), "typed": nightly.name}
        return client.post(f"{place}/delete", sure)

    assert delete().url == place
    assert ScheduledJob.objects.exists()
    end(claim_one(queue), Succeeded("null"))
    assert delete().url == f"{home}scheduled-jobs"
    assert not ScheduledJob.objects.exists()
    assert not ScheduleFire.objects.exists()
    assert Job.objects.get().scheduled_job_id is None
    assert AuditEntry.objects.latest("id").action == "scheduled_job.delete"


def test_hostile_names_errors_and_payloads_are_text(signed_in, home, queue, nightly, place):
    payload = {HOSTILE: [HOSTILE, "\x1b[31mred", "x" * 200_000]}
    ScheduledJob.objects.filter(pk=nightly.pk).update(
        name=HOSTILE,
        last_error=HOSTILE,
        paused_reason=HOSTILE,
        is_paused=True,
        job_type=HOSTILE,
        payload_template=payload,
    )
    client = signed_in("owner")
    for page in (f"{home}scheduled-jobs", place, f"{place}/edit"):
        html = client.get(page).content.decode()
        assert "<svg onload" not in html, page
        assert "\u202e" not in re.sub(r"<input[^>]*>|<textarea.*?</textarea>", "", html, flags=re.DOTALL), page
        assert "&lt;svg onload" in html, page
    assert "\u202e" not in client.post(f"{place}/trigger", follow=True).content.decode()


def test_a_row_that_can_not_be_read_does_not_break_its_pages(signed_in, home, place, nightly):
    ScheduledJob.objects.filter(pk=nightly.pk).update(cron_expression="what", timezone="Mars/Base")
    client = signed_in("owner")
    for page in (f"{home}scheduled-jobs", place, f"{place}/edit"):
        assert client.get(page).status_code == 200, page


def test_a_schedule_of_another_project_of_mine_is_not_on_this_ones_pages(signed_in, home, organization):
    other = create_schedule(
        make_queue(make_project(organization)), name="o", cron_expression="0 3 * * *", job_type="noop"
    )
    client, path = signed_in("owner"), f"{home}scheduled-jobs/{other.pk}"

    assert client.get(path).status_code == 404
    for verb in ("activate", "deactivate", "pause", "resume", "trigger", "backfill", "delete", "edit"):
        assert client.post(f"{path}/{verb}").status_code == 404, verb
    assert other.name not in re.findall(r"<bdi>(\w+)</bdi>", client.get(f"{home}scheduled-jobs").content.decode())


def test_forms_need_their_token(place, owner):
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)

    assert client.post(f"{place}/trigger").status_code == 403
