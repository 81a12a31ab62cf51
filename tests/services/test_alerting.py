"""Each kind of alert fires once in a staged fault, is resolved once, and leaves its history."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from jobs.models import (
    NOTICES_QUEUE,
    Alert,
    AlertRule,
    OutgoingEvent,
    QueueStat,
)
from jobs.scheduler.duties import alerts as duty
from jobs.selectors import alert_facts
from jobs.selectors.alert_facts import Measured
from jobs.services import alerting
from jobs.services.alert_rules import delete_rule, update_rule
from jobs.services.alerting import look_at_all, look_without_leader
from jobs.services.statistics import fold_all, look_at_all_queues
from jobs.services.subscriptions import create_subscription
from tests.factories import job_in, make_project, make_queue
from tests.services.alert_faults import FAULTS, ONCE, URL, OldestAge, ScheduleLate, WorkerLost, leader_seen, told, watch

pytestmark = pytest.mark.django_db


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
