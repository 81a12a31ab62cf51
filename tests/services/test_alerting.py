"""Each kind of alert fires once in a staged fault, is resolved once, and leaves its history."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from jobs.decisions import Failed, Succeeded
from jobs.models import (
    NOTICES_QUEUE,
    Alert,
    AlertRule,
    Job,
    JobStat,
    LeaderTerm,
    OutgoingEvent,
    QueueStat,
    ScheduledJob,
    ScheduleFire,
    Worker,
)
from jobs.scheduler.duties import alerts as duty
from jobs.selectors import alert_facts
from jobs.selectors.alert_facts import Measured
from jobs.services import alerting
from jobs.services.alert_rules import create_rule, delete_rule, update_rule
from jobs.services.alerting import look_at_all, look_without_leader
from jobs.services.firing import fire_due
from jobs.services.schedules import create_schedule
from jobs.services.statistics import fold_all, look_at_all_queues
from jobs.services.subscriptions import create_subscription
from jobs.services.workers import retire_silent
from tests.factories import claim_one, end, job_in, make_job, make_project, make_queue

pytestmark = pytest.mark.django_db

URL = "https://hooks.example.com/alerts"


def watch(project, kind, threshold, **fields):
    given = {"name": kind, "kind": kind, "threshold": threshold, "webhook_url": URL, "emails": ["ops@example.com"]}
    return create_rule(project, by=None, **{**given, **fields})


def told(project):
    """The notices, as (job type, what they tell)."""
    jobs = Job.objects.filter(project_id=project.pk, queue__name=NOTICES_QUEUE).order_by("id")
    return [
        (
            job.job_type,
            job.payload["body"]["type"] if "body" in job.payload else job.payload["subject"][1:].split("]")[0],
        )
        for job in jobs
    ]


ONCE = [
    ("http.webhook", "alert.fired"),
    ("system.email", "FIRING"),
    ("http.webhook", "alert.resolved"),
    ("system.email", "RESOLVED"),
]


def pass_minutes(minutes: int = 10) -> None:
    """What was counted was counted so much earlier."""
    for stat in JobStat.objects.filter(grain="minute"):
        JobStat.objects.filter(pk=stat.pk).update(at=stat.at - timedelta(minutes=minutes))


def leader_seen(ago_s: float = 0.0) -> None:
    LeaderTerm.objects.all().delete()
    LeaderTerm.objects.create(hostname="h", pid=1, backend_pid=1, renewed_at=Now() - timedelta(seconds=ago_s))


class _Fault:
    """Something that goes wrong and is mended; each in its project."""

    kind = ""
    threshold = 1.0

    def __init__(self, queue) -> None:
        self.queue = queue

    def fields(self):
        return {}


class FailureRate(_Fault):
    kind, threshold = "failure_rate", 50.0

    def fields(self):
        return {"min_attempts": 2}

    def breaks(self):
        for verdict in (Failed("no"), Failed("no"), Succeeded()):
            make_job(self.queue, max_attempts=1)
            end(claim_one(self.queue), verdict)
        fold_all()

    def mends(self):
        pass_minutes()


class OldestAge(_Fault):
    kind, threshold = "oldest_age", 600.0

    def breaks(self):
        make_job(self.queue)
        Job.objects.update(run_at=Now() - timedelta(seconds=700))
        look_at_all_queues()

    def mends(self):
        end(claim_one(self.queue), Succeeded())
        look_at_all_queues()


class DeadLetterGrowth(_Fault):
    kind, threshold = "dead_letter_growth", 2.0

    def breaks(self):
        job_in("dead_letter", self.queue)
        job_in("dead_letter", self.queue)
        fold_all()

    def mends(self):
        pass_minutes()


class WorkerLost(_Fault):
    kind = "worker_lost"

    def breaks(self):
        Worker.objects.create(hostname="h", pid=1, version="1", max_concurrency=1)
        Worker.objects.update(last_seen_at=Now() - timedelta(seconds=60))
        assert retire_silent(30.0)

    def mends(self):
        Worker.objects.update(last_seen_at=Now() - timedelta(hours=1))


class ScheduleLate(_Fault):
    kind, threshold = "schedule_late", 60.0

    def breaks(self):
        create_schedule(self.queue, name="s", cron_expression="0 0 1 1 *", job_type="noop")
        ScheduledJob.objects.update(next_run_at=Now() - timedelta(seconds=90))

    def mends(self):
        assert fire_due() >= 1


class ScheduleMissed(_Fault):
    kind = "schedule_missed"

    def breaks(self):
        create_schedule(self.queue, name="s", cron_expression="0 * * * *", job_type="noop", misfire_policy="skip")
        ScheduledJob.objects.update(next_run_at=_hour_ago())
        assert fire_due() >= 1
        assert ScheduleFire.objects.filter(reason="misfire").exists()

    def mends(self):
        ScheduleFire.objects.update(decided_at=F("decided_at") - timedelta(hours=1))


class NoLeader(_Fault):
    kind, threshold = "no_leader", 15.0

    def breaks(self):
        leader_seen(20.0)

    def mends(self):
        leader_seen()


def _hour_ago():
    from scheduler_project.lib.sql import database_now

    return database_now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)


FAULTS = [FailureRate, OldestAge, DeadLetterGrowth, WorkerLost, ScheduleLate, ScheduleMissed, NoLeader]


def test_every_kind_is_staged():
    assert {fault.kind for fault in FAULTS} == set(AlertRule.Kind.values)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
def test_it_fires_once_and_is_resolved_once(queue, fault):
    leader_seen()
    look_at_all_queues()
    staged = fault(queue)
    rule = watch(queue.project, staged.kind, staged.threshold, **staged.fields())
    stranger = watch(make_project(), staged.kind, staged.threshold, **staged.fields())
    look_at_all()
    assert not Alert.objects.exists()

    staged.breaks()
    look_at_all()
    look_at_all()
    [alert] = Alert.objects.filter(rule_id=rule.pk)
    assert alert.state == "firing"
    assert alert.value >= staged.threshold
    assert told(queue.project) == ONCE[:2]

    staged.mends()
    look_at_all()
    look_at_all()
    [alert] = Alert.objects.filter(rule_id=rule.pk)
    assert alert.state == "resolved"
    assert alert.resolved_at is not None
    assert alert.fired_at is not None
    assert alert.resolved_at > alert.fired_at
    assert told(queue.project) == ONCE
    # Workers and leaders serve every project; all else is the project's own.
    is_shared = staged.kind in ("worker_lost", "no_leader")
    assert Alert.objects.filter(rule_id=stranger.pk).exists() is is_shared


def test_it_fires_only_once_it_was_wrong_for_so_long(queue):
    rule = watch(queue.project, "no_leader", 15, for_secs=60)
    leader_seen(20)
    look_at_all()
    assert Alert.objects.get().state == "pending"
    assert told(queue.project) == []

    Alert.objects.update(since=Now() - timedelta(seconds=61))
    look_at_all()
    assert Alert.objects.get(rule_id=rule.pk).state == "firing"


def test_what_was_wrong_for_a_moment_leaves_no_trace(queue):
    watch(queue.project, "no_leader", 15, for_secs=60)
    leader_seen(20)
    look_at_all()
    leader_seen()
    look_at_all()

    assert not Alert.objects.exists()
    assert told(queue.project) == []


def test_two_can_not_open_the_same_alert(queue):
    rule = watch(queue.project, "no_leader", 15)
    fields = {"project_id": queue.project_id, "rule_id": rule.pk, "rule_name": "x", "kind": "no_leader"}
    Alert.objects.create(threshold=1, value=1, **fields)
    with pytest.raises(IntegrityError, match="alerts_one_open"), transaction.atomic():
        Alert.objects.create(threshold=1, value=1, **fields)


def test_of_two_who_saw_it_pending_one_fires_it(queue, monkeypatch):
    """The second has read the alert before the first moved it."""
    rule = watch(queue.project, "no_leader", 15)
    leader_seen(20)
    stale = Alert.objects.create(
        project_id=queue.project_id, rule_id=rule.pk, rule_name="x", kind="no_leader", threshold=15, value=20
    )
    measured = Measured(20.0)

    alerting._fire(rule, Alert.objects.get(), measured)
    alerting._fire(rule, stale, measured)

    assert told(queue.project) == ONCE[:2]


def test_a_rule_that_breaks_does_not_stop_the_others(queue, monkeypatch):
    watch(queue.project, "oldest_age", 1)
    watch(queue.project, "no_leader", 15)
    leader_seen(20)
    monkeypatch.setitem(alert_facts._MEASURES, AlertRule.Kind.OLDEST_AGE, lambda *_: 1 / 0)

    assert (duty.duty(5.0).run() or 0) >= 5.0

    assert Alert.objects.get().kind == "no_leader"


def test_old_counts_neither_fire_nor_resolve(queue):
    watch(queue.project, "oldest_age", 600)
    OldestAge(queue).breaks()
    QueueStat.objects.update(as_of=Now() - timedelta(minutes=5))
    look_at_all()
    assert not Alert.objects.exists()

    look_at_all_queues()
    look_at_all()
    QueueStat.objects.update(as_of=Now() - timedelta(minutes=5), oldest_run_at=None)
    look_at_all()
    assert Alert.objects.get().state == "firing"


def test_without_a_leader_a_worker_fires_what_shows_without_one(queue):
    watch(queue.project, "no_leader", 15)
    watch(queue.project, "schedule_late", 60)
    watch(queue.project, "worker_lost", 1)
    ScheduleLate(queue).breaks()
    WorkerLost(queue).breaks()
    leader_seen()
    assert not look_without_leader()
    assert not Alert.objects.exists()

    leader_seen(20)
    assert look_without_leader()
    assert look_without_leader()

    assert sorted(Alert.objects.values_list("kind", "state")) == [("no_leader", "firing"), ("schedule_late", "firing")]
    assert len(told(queue.project)) == 4


def test_failing_notices_set_off_no_alert(queue):
    watch(queue.project, "failure_rate", 1, min_attempts=1)
    watch(queue.project, "dead_letter_growth", 1)
    notices = make_queue(queue.project, name=NOTICES_QUEUE)
    job_in("dead_letter", notices)
    fold_all()
    look_at_all_queues()

    look_at_all()

    assert not Alert.objects.exists()


def test_a_rule_of_one_queue_looks_at_no_other(queue):
    other = make_queue(queue.project)
    watch(queue.project, "dead_letter_growth", 1, queue_id=other.pk)
    job_in("dead_letter", queue)
    fold_all()
    look_at_all()
    assert not Alert.objects.exists()

    job_in("dead_letter", other)
    fold_all()
    look_at_all()
    assert Alert.objects.get().details == {"queues": {other.name: 1}}


def test_a_rule_of_the_organization_looks_at_all_its_projects_and_at_no_other(queue):
    sister = make_queue(make_project(queue.project.organization))
    watch(queue.project, "dead_letter_growth", 1, scope="organization")
    job_in("dead_letter", make_queue())
    fold_all()
    look_at_all()
    assert not Alert.objects.exists()

    job_in("dead_letter", sister)
    fold_all()
    look_at_all()
    assert Alert.objects.get().project_id == queue.project_id


@pytest.mark.parametrize("ends", ["switched off", "deleted"])
def test_a_rule_that_goes_resolves_its_alert_and_leaves_its_history(queue, ends):
    rule = watch(queue.project, "no_leader", 15)
    leader_seen(20)
    look_at_all()

    if ends == "deleted":
        delete_rule(rule)
    else:
        update_rule(rule, is_enabled=False)
    look_at_all()

    alert = Alert.objects.get()
    assert (alert.state, alert.rule_name) == ("resolved", "no_leader")
    assert alert.resolution == f"The rule was {ends}."
    assert told(queue.project) == ONCE


def test_those_who_subscribed_hear_of_it_too(queue):
    create_subscription(queue.project, name="s", url=URL, types=["alert.fired"], by=None)
    watch(queue.project, "no_leader", 15, webhook_url="", emails=[])
    leader_seen(20)
    look_at_all()

    event = OutgoingEvent.objects.get()
    assert event.type == "alert.fired"
    assert event.data["summary"].startswith("20")


def test_history_is_forgotten_after_a_year(queue):
    rule = watch(queue.project, "no_leader", 15)
    leader_seen(20)
    look_at_all()
    delete_rule(rule)
    assert alerting.forget_old(10) == 0
    long_ago = Now() - timedelta(days=366)
    Alert.objects.update(since=long_ago, fired_at=long_ago, resolved_at=long_ago)
    assert alerting.forget_old(10) == 1


def test_a_look_at_which_nothing_changes_writes_nothing(queue, django_assert_max_num_queries):
    """Two statements for all rules and their open alerts, the clock, and what each measures."""
    leader_seen(20)
    look_at_all_queues()
    watch(queue.project, "failure_rate", 50)
    watch(queue.project, "oldest_age", 600)
    watch(queue.project, "no_leader", 15)
    look_at_all()

    with django_assert_max_num_queries(8) as seen:
        look_at_all()

    assert {query["sql"].split()[0].lower() for query in seen.captured_queries} == {"select"}
