"""Pages of schedules: list, ledger, actions, backfill, editor."""

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
from tests.web.test_pages import HOSTILE

BUDGET = 12
HOUR = timedelta(hours=1)


@pytest.fixture
def nightly(queue):
    return create_schedule(
        queue, name="nightly", cron_expression="0 3 * * *", timezone="Europe/Berlin", job_type="noop"
    )


@pytest.fixture
def place(home, nightly):
    return f"{home}scheduled-jobs/{nightly.pk}"


def fire(schedule, due_at, reason="", job=None, late_ms=0):
    return ScheduleFire.objects.create(
        project_id=schedule.project_id, scheduled_job=schedule, due_at=due_at, reason=reason,
        outcome="fired" if job else "skipped", job_id=job and job.pk, late_ms=late_ms,
    )  # fmt: skip


def sent_by(client, path, **changed):
    """What a browser would send from the form of a page, with some fields changed."""
    html = client.get(path).content.decode()
    form = html.split('class="editor"')[1]
    found = {m["n"]: m["v"] for m in re.finditer(r'<input[^>]*?name="(?P<n>\w+)"(?:[^>]*?value="(?P<v>[^"]*)")?', form)}
    for select in re.finditer(r'<select name="(\w+)".*?</select>', form, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', select[0]) or re.search(r'value="([^"]*)"', select[0])
        found[select[1]] = chosen[1] if chosen else ""
    found["payload_template"] = "{}"
    found.pop("csrfmiddlewaretoken", None)
    return {name: value or "" for name, value in found.items()} | changed


def found_in(pattern, html):
    """What the pattern's group matches."""
    match = re.search(pattern, html)
    assert match
    return match[1].replace("&amp;", "&")


def token_of(answer):
    return answer.content.decode().split('name="confirm_token" value="')[1].split('"')[0]


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


def test_a_schedule_is_made_and_changed_without_a_script(signed_in, home, queue):
    client, path = signed_in("manager"), f"{home}scheduled-jobs"
    fresh = sent_by(client, f"{path}/new", name="report", cron_expression="30 2 * * *", timezone="Europe/Berlin",
                    job_type="noop", payload_template='{"a": [1]}', queue=str(queue.pk))  # fmt: skip
    answer = client.post(f"{path}/new", fresh)
    made = ScheduledJob.objects.get()

    assert answer.url == f"{path}/{made.pk}"
    assert (made.payload_template, made.timezone) == ({"a": [1]}, "Europe/Berlin")
    assert "At 02:30" in client.get(answer.url).content.decode()
    planned = made.next_run_at
    edited = sent_by(client, f"{path}/{made.pk}/edit", name="reports", starts_at="2026-01-01T08:00")
    assert edited["cron_expression"] == "30 2 * * *"
    assert client.post(f"{path}/{made.pk}/edit", edited).status_code == 302
    made.refresh_from_db()
    assert (made.name, made.next_run_at) == ("reports", planned)
    assert made.starts_at == datetime(2026, 1, 1, 7, tzinfo=UTC), "on the schedule's clock, not the viewer's"
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True)) == [
        "scheduled_job.create", "scheduled_job.update",
    ]  # fmt: skip


def test_saving_what_is_there_changes_nothing(signed_in, place, nightly):
    ScheduledJob.objects.filter(pk=nightly.pk).update(
        starts_at="2025-10-26T01:30:00.5Z", payload_template={"b": "ü"}, misfire_policy="skip"
    )
    client = signed_in("manager")
    edited = sent_by(client, f"{place}/edit", payload_template='{"b": "ü"}')
    assert edited["starts_at"] == "2025-10-26T02:30:00"
    assert client.post(f"{place}/edit", edited).status_code == 302
    before = nightly.next_run_at
    nightly.refresh_from_db()

    assert (nightly.next_run_at, nightly.misfire_policy) == (before, "skip")
    assert nightly.starts_at == datetime(2025, 10, 26, 1, 30, 0, 500_000, tzinfo=UTC), "the second pass, as it was"


def test_an_edit_over_somebody_elses_is_refused(signed_in, place, nightly):
    client = signed_in("manager")
    edited = sent_by(client, f"{place}/edit", name="mine")
    ScheduledJob.objects.filter(pk=nightly.pk).update(job_type="theirs")
    answer = client.post(f"{place}/edit", edited)

    assert answer.status_code == 409
    assert 'value="theirs"' in answer.content.decode()
    nightly.refresh_from_db()
    assert nightly.name == "nightly"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cron_expression", "61 * * * *"),
        ("cron_expression", "0 0 31 2 *"),
        ("cron_expression", ""),
        ("timezone", "Mars/Base"),
        ("timezone", ""),
        ("payload_template", "{"),
        ("payload_template", "[" * 100_000),
        ("payload_template", '{"a": NaN}'),
        ("payload_template", '"\\u0000"'),
        ("payload_template", "9" * 5_000),
        ("job_type", "a b"),
        ("name", "\x00"),
        ("misfire_cap", "0"),
        ("jitter_secs", "1e9"),
        ("starts_at", "tomorrow"),
        ("starts_at", "0001-01-01T00:00"),
        ("starts_at", "2026-03-29T02:30"),
        ("ends_at", "2001-01-01T00:00"),
        ("run_once_at", "2999-01-01T00:00"),
        ("overlap_policy", "x"),
        ("queue", "x"),
        ("retry_policy", "0190b3f0-0000-7000-8000-000000000000"),
    ],
)
def test_bad_settings_are_a_422_beside_their_field(signed_in, place, nightly, field, value):
    client = signed_in("manager")
    answer = client.post(f"{place}/edit", sent_by(client, f"{place}/edit", **{field: value}))

    assert answer.status_code == 422
    assert 'class="problem"' in answer.content.decode()


def test_a_queue_of_another_project_can_not_be_chosen(signed_in, place, organization):
    other = make_queue(make_project(organization))
    client = signed_in("owner")

    assert client.post(f"{place}/edit", sent_by(client, f"{place}/edit", queue=str(other.pk))).status_code == 422


def test_the_preview_shows_three_clocks_and_clock_changes(signed_in, home, queue):
    client, path = signed_in("viewer"), f"{home}scheduled-jobs/preview"
    client.cookies["tz"] = "America/New_York"
    sent = {"cron_expression": "30 2 * * 0", "timezone": "Europe/Berlin", "starts_at": "2027-03-20T00:00"}
    html = client.post(path, sent).content.decode()

    assert "<html" not in html
    assert "Sun 28 Mar 2027, 03:00 CEST" in html
    assert "Sat 27 Mar 2027, 21:00 EDT" in html
    assert "28 Mar, 01:00" in html
    assert "runs right after the gap" in html
    assert html.count("<tr>") == 11


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "Give an expression"),
        ({"cron_expression": "nonsense"}, "has 1 fields"),
        ({"cron_expression": HOSTILE}, "fields"),
        ({"cron_expression": "* * * * *", "timezone": "x"}, "not a time zone"),
        ({"run_once_at": "2001-01-01T00:00"}, "has passed"),
        (
            {"cron_expression": "0 0 * * *", "starts_at": "2999-01-01T00:00", "ends_at": "2998-01-01T00:00"},
            "never fire",
        ),
        ({"cron_expression": "0 0 1 * 1"}, "or the day of week"),
        ({"cron_expression": "0 0 * * *"}, "full hour"),
        ({"cron_expression": "* * * * *", "jitter_secs": "90"}, "change their order"),
        ({"cron_expression": "\x00" * 500}, ""),
    ],
)
def test_the_preview_answers_whatever_is_typed(signed_in, home, queue, sent, said):
    answer = signed_in("viewer").post(f"{home}scheduled-jobs/preview", {"timezone": "UTC", **sent})

    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert "<svg onload" not in answer.content.decode()


def test_the_preview_button_saves_nothing(signed_in, home, queue):
    client, path = signed_in("manager"), f"{home}scheduled-jobs/new"
    answer = client.post(path, {"preview": "1", "cron_expression": "30 2 * * *", "timezone": "UTC"})

    assert answer.status_code == 200
    assert "At 02:30" in answer.content.decode()
    assert not ScheduledJob.objects.exists()


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
