"""The editor of schedules and its live preview."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobs.models import ScheduledJob
from orgs.models import AuditEntry
from tests.factories import make_project, make_queue
from tests.web.forms import sent_by
from tests.web.test_pages import HOSTILE

BUDGET = 12
HOUR = timedelta(hours=1)


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


def test_a_timeout_is_set_shown_and_taken_away(signed_in, place, nightly):
    client = signed_in("manager")
    for typed, stored in (("90", 90.0), ("", None)):
        assert client.post(f"{place}/edit", sent_by(client, f"{place}/edit", timeout_s=typed)).status_code == 302
        nightly.refresh_from_db()
        assert nightly.timeout_s == stored
        assert ("an attempt" in client.get(place).content.decode()) is bool(typed)
    assert client.post(f"{place}/edit", sent_by(client, f"{place}/edit", timeout_s="0")).status_code == 422
