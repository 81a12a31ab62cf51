"""Schedules fire once for each due time, and the ledger says what became of each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from jobs.decisions import Succeeded
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.models import Job, ScheduledJob, ScheduleFire
from jobs.selectors.ledger import promised_and_delivered
from jobs.services import firing, schedules
from jobs.services.backfill import backfill
from jobs.services.firing import due_in_s, fire_due, recompute_after_upgrade
from queues.models import Queue
from scheduler_project.lib.errors import Conflict, ValidationFailed
from scheduler_project.lib.sql import database_now
from tests.factories import claim_one, make_queue

pytestmark = pytest.mark.django_db


def make_schedule(queue: Queue, **settings: Any) -> ScheduledJob:
    given = {"name": "report", "cron_expression": "* * * * *", "job_type": "noop", **settings}
    return schedules.create_schedule(queue, **given)


def last_minute() -> datetime:
    return database_now().replace(second=0, microsecond=0)


def put_back(schedule: ScheduledJob, minutes: int) -> datetime:
    """As if the scheduler had been down for so many due times of an every-minute schedule."""
    first = last_minute() - timedelta(minutes=minutes - 1)
    ScheduledJob.objects.filter(pk=schedule.pk).update(next_run_at=first)
    return first


def ledger(schedule: ScheduledJob) -> list[tuple[str, str]]:
    return list(ScheduleFire.objects.filter(scheduled_job=schedule).order_by("due_at").values_list("outcome", "reason"))


def test_due_schedule_submits_its_job_and_plans_the_next_from_the_planned_time(queue: Queue) -> None:
    schedule = make_schedule(queue, payload_template={"n": 1})
    first = put_back(schedule, 1)

    assert fire_due() == 1
    assert fire_due() == 0

    job = Job.objects.get()
    assert (job.job_type, job.payload, job.status, job.scheduled_job_id, job.run_at) == (
        "noop", {"n": 1}, "queued", schedule.pk, first,
    )  # fmt: skip
    schedule.refresh_from_db()
    assert schedule.next_run_at == first + timedelta(minutes=1)
    fire = ScheduleFire.objects.get()
    assert (fire.outcome, fire.job_id, fire.due_at) == ("fired", job.pk, first)


@pytest.mark.parametrize(
    ("policy", "fired"), [("run_once", 1), ("skip", 0), ("run_all", 4)], ids=["once", "skip", "all up to the cap"]
)
def test_ten_missed_due_times_are_ten_rows_with_the_right_reasons(queue: Queue, policy: str, fired: int) -> None:
    # Every five minutes, ten of them, the latest well past the grace.
    schedule = make_schedule(queue, cron_expression="*/5 * * * *", misfire_policy=policy, misfire_cap=4)
    now = database_now()
    latest = now.replace(minute=now.minute - now.minute % 5, second=0, microsecond=0) - timedelta(minutes=5)
    due_times = [latest - timedelta(minutes=5 * n) for n in reversed(range(10))]
    ScheduledJob.objects.filter(pk=schedule.pk).update(
        next_run_at=due_times[0], ends_at=latest + timedelta(minutes=1), misfire_grace_secs=0
    )

    fire_due()

    assert list(ScheduleFire.objects.order_by("due_at").values_list("due_at", flat=True)) == due_times
    assert ledger(schedule) == [("skipped", "misfire")] * (10 - fired) + [("fired", "")] * fired
    assert Job.objects.count() == fired
    delivered = promised_and_delivered(schedule.pk, due_times[0], latest)
    assert (delivered["promised"], delivered["delivered"], delivered["skipped_misfire"]) == (10, fired, 10 - fired)


def test_due_times_within_the_grace_are_on_time_whatever_the_policy(queue: Queue) -> None:
    schedule = make_schedule(queue, misfire_policy="skip", misfire_grace_secs=3600)
    put_back(schedule, 3)

    fire_due()

    assert ledger(schedule) == [("fired", "")] * 3


def test_backfill_of_what_was_missed_runs_it_once(queue: Queue) -> None:
    schedule = make_schedule(queue, misfire_policy="skip", misfire_grace_secs=0)
    first = put_back(schedule, 5)
    fire_due()
    until = database_now()

    dry = backfill(schedule.pk, since=first, until=until, only_missed=True, is_dry_run=True)
    done = backfill(schedule.pk, since=first, until=until, only_missed=True)
    again = backfill(schedule.pk, since=first, until=until, only_missed=True)

    assert dry.due_times == done.due_times
    assert len(done.job_ids) == 5
    assert again.due_times == []
    assert set(ledger(schedule)) == {("fired", "backfill")}
    assert Job.objects.count() == 5


def test_backfill_of_a_window_before_the_schedule_existed(queue: Queue) -> None:
    schedule = make_schedule(queue, cron_expression="0 3 * * *", timezone="Europe/Berlin")
    until = database_now() - timedelta(days=30)

    done = backfill(schedule.pk, since=until - timedelta(days=7), until=until)

    assert len(done.job_ids) == 7
    with pytest.raises(ValidationFailed):
        backfill(schedule.pk, since=until, until=database_now() + timedelta(hours=1))


def test_paused_schedule_keeps_its_ledger_and_resumes_from_then_on(queue: Queue) -> None:
    schedule = make_schedule(queue, misfire_grace_secs=3600)
    put_back(schedule, 3)
    schedules.pause(schedule.pk, reason="holiday", by=None)

    fire_due()
    schedules.resume(schedule.pk)

    assert ledger(schedule) == [("skipped", "paused")] * 3
    assert not Job.objects.exists()


def test_pause_with_an_end_ends_by_itself(queue: Queue) -> None:
    schedule = make_schedule(queue, misfire_grace_secs=3600)
    first = put_back(schedule, 4)
    schedules.pause(schedule.pk, by=None, until=first + timedelta(minutes=2))

    fire_due()

    assert ledger(schedule) == [("skipped", "paused")] * 2 + [("fired", "")] * 2
    assert not ScheduledJob.objects.get().is_paused


def test_reenabled_schedule_does_not_fire_what_passed_while_it_was_off(queue: Queue) -> None:
    schedule = make_schedule(queue)
    schedules.deactivate(schedule.pk)
    put_back(schedule, 600)
    fire_due()

    schedules.activate(schedule.pk)
    fire_due()

    assert ledger(schedule) == []
    assert (ScheduledJob.objects.get().next_run_at or datetime.min.replace(tzinfo=UTC)) > database_now()


@pytest.mark.parametrize(
    ("policy", "second", "jobs"),
    [
        ("allow", ("fired", ""), ["running", "queued"]),
        ("skip", ("skipped", "overlap"), ["running"]),
        ("queue_one", ("fired", ""), ["running", "scheduled"]),
    ],
)
def test_due_time_while_the_earlier_job_runs_follows_the_overlap_policy(
    queue: Queue, policy: str, second: tuple[str, str], jobs: list[str]
) -> None:
    schedule = make_schedule(queue, overlap_policy=policy, misfire_grace_secs=3600)
    put_back(schedule, 1)
    fire_due()
    lease = claim_one(queue)
    ScheduledJob.objects.update(next_run_at=last_minute() - timedelta(seconds=30))

    fire_due()

    assert second in ledger(schedule)
    assert list(Job.objects.order_by("id").values_list("status", flat=True)) == jobs
    if policy == "queue_one":
        ScheduledJob.objects.update(next_run_at=last_minute() - timedelta(seconds=20))
        fire_due()
        assert ledger(schedule).count(("skipped", "overlap")) == 1
        settle([Ending.of(lease, Succeeded(), lease.job_id, 1.0)])
        assert list(Job.objects.order_by("id").values_list("status", flat=True)) == ["completed", "queued"]


def test_cancel_running_takes_the_place_of_the_earlier_job(queue: Queue) -> None:
    schedule = make_schedule(queue, overlap_policy="cancel_running", misfire_grace_secs=3600)
    put_back(schedule, 1)
    fire_due()
    claim_one(queue)
    ScheduledJob.objects.update(next_run_at=last_minute() - timedelta(seconds=30))

    fire_due()

    first, second = Job.objects.order_by("id")
    assert first.cancel_requested_at is not None
    assert second.status == "queued"


def test_bad_rows_never_stop_the_good_ones_and_are_not_retried_at_once(queue: Queue) -> None:
    good = [make_schedule(queue, name=f"good {n}") for n in range(20)]
    bad = [make_schedule(queue, name=f"bad {n}") for n in range(2)]
    deleted = make_queue(queue.project)
    orphan = make_schedule(deleted, name="orphan")
    ScheduledJob.objects.filter(pk=bad[0].pk).update(cron_expression="0 0 31 2 *")
    ScheduledJob.objects.filter(pk=bad[1].pk).update(timezone="Mars/Base")
    Queue.objects.filter(pk=deleted.pk).update(deleted_at=Now())
    ScheduledJob.objects.update(next_run_at=last_minute())

    assert fire_due() == len(good)
    assert fire_due() == 0

    for schedule in [*bad, orphan]:
        schedule.refresh_from_db()
        assert schedule.last_error
        assert ledger(schedule) == []
    assert Job.objects.count() == len(good)
    # The good ones come again in the next minute, which may be now.
    ScheduledJob.objects.filter(pk__in=[schedule.pk for schedule in good]).update(is_active=False)
    due_s = due_in_s()
    assert due_s is None or due_s > 0


def test_schedule_ends_after_its_number_of_fires_and_a_single_moment_after_one(queue: Queue) -> None:
    limited = make_schedule(queue, name="limited", max_fires=2, misfire_grace_secs=3600)
    once = make_schedule(
        queue, name="once", cron_expression="", run_once_at=database_now() + timedelta(hours=1), misfire_grace_secs=3600
    )
    put_back(limited, 4)
    ScheduledJob.objects.filter(pk=once.pk).update(next_run_at=last_minute(), run_once_at=last_minute())

    fire_due()

    assert ledger(limited) == [("fired", "")] * 2 + [("skipped", "limit")] * 2
    assert ledger(once) == [("fired", "")]
    assert not ScheduledJob.objects.filter(is_active=True).exists()


def test_trigger_runs_now_and_changes_no_plan(queue: Queue) -> None:
    schedule = make_schedule(queue, cron_expression="0 0 1 1 *")
    planned = schedule.next_run_at

    job_id = schedules.trigger(schedule.pk)

    assert Job.objects.get(pk=job_id).status == "queued"
    assert ledger(schedule) == [("fired", "manual")]
    assert ScheduledJob.objects.get().next_run_at == planned


def test_due_time_decided_before_is_not_decided_again(queue: Queue) -> None:
    schedule = make_schedule(queue, misfire_grace_secs=3600)
    first = put_back(schedule, 2)
    fire_due()
    ScheduledJob.objects.update(next_run_at=first)  # a clock or a hand went back

    fire_due()

    assert Job.objects.count() == 2
    assert ScheduledJob.objects.get().next_run_at == first + timedelta(minutes=2)


def test_next_runs_are_computed_again_after_an_upgrade_of_the_time_zones(queue: Queue) -> None:
    schedule = make_schedule(queue, cron_expression="0 9 * * *", timezone="America/Vancouver")
    wrong = (schedule.next_run_at or database_now()) + timedelta(hours=1)
    ScheduledJob.objects.update(next_run_at=wrong, tzdata_version="2025.2")

    assert recompute_after_upgrade() == 1
    assert recompute_after_upgrade() == 0

    assert ScheduledJob.objects.get().next_run_at == schedule.next_run_at


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"cron_expression": "0 0 31 2 *"}, "cron_expression"),
        ({"cron_expression": "61 * * * *"}, "cron_expression"),
        ({"cron_expression": ""}, "cron_expression"),
        ({"timezone": "Europe"}, "timezone"),
        ({"timezone": "../../etc/passwd"}, "timezone"),
        ({"timezone": "PST"}, "timezone"),
        ({"timezone": "europe/berlin"}, "timezone"),
        ({"timezone": "UTC+02:00"}, "timezone"),
        ({"job_type": ""}, "job_type"),
        ({"overlap_policy": "maybe"}, "overlap_policy"),
        ({"payload_template": {"x": float("nan")}}, "payload_template"),
        ({"ends_at": datetime(2020, 1, 1, tzinfo=UTC)}, "cron_expression"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_bad_setting_is_refused_naming_its_field(queue: Queue, settings: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        make_schedule(queue, **settings)

    assert field in [error.field for error in caught.value.details]
    assert not ScheduledJob.objects.exists()


def test_a_template_may_be_null_as_a_payload_may(queue: Queue) -> None:
    schedule = make_schedule(queue, payload_template=None)

    assert schedule.payload_template is None
    assert ScheduledJob.objects.get(pk=schedule.pk).payload_template is None
    assert Job.objects.get(pk=schedules.trigger(schedule.pk)).payload is None


def test_name_is_unique_in_its_project_and_a_queue_of_another_project_is_refused(queue: Queue) -> None:
    schedule = make_schedule(queue)

    with pytest.raises(Conflict):
        make_schedule(queue)
    with pytest.raises(ValidationFailed):
        schedules.update_schedule(schedule.pk, queue=make_queue())


def test_edit_of_the_expression_moves_the_next_run_from_now_on(queue: Queue) -> None:
    schedule = make_schedule(queue, cron_expression="0 0 1 1 *")

    changed = schedules.update_schedule(schedule.pk, cron_expression="* * * * *")

    assert changed.next_run_at == last_minute() + timedelta(minutes=1)


@pytest.mark.parametrize(("policy", "fired"), [("run_once", 1), ("run_all", 5), ("skip", 0)])
def test_gap_of_many_pieces_is_judged_as_one(queue: Queue, policy: str, fired: int) -> None:
    schedule = make_schedule(queue, misfire_policy=policy, misfire_cap=5, misfire_grace_secs=0)
    put_back(schedule, 2_500)
    ScheduledJob.objects.update(ends_at=last_minute())

    rounds = 0
    while ScheduledJob.objects.filter(is_active=True).exists() and rounds < 10:
        fire_due()
        rounds += 1

    assert rounds > 1
    assert ScheduleFire.objects.count() == 2_500
    assert Job.objects.count() == fired


def test_row_that_breaks_our_own_code_stops_no_other(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = make_schedule(queue, name="bad"), make_schedule(queue, name="good", job_type="fine")
    ScheduledJob.objects.update(next_run_at=last_minute())
    real = firing.fire_one

    def fire_one(schedule: ScheduledJob, *args: Any) -> Any:
        if schedule.pk == bad.pk:
            raise KeyError("a fault of ours")
        return real(schedule, *args)

    monkeypatch.setattr(firing, "fire_one", fire_one)

    assert fire_due() == 1
    assert ledger(good) == [("fired", "")]
    assert "a fault of ours" in ScheduledJob.objects.get(pk=bad.pk).last_error
