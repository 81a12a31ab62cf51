"""Faults that alerts watch for, each staged and mended, and what is told of them."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F
from django.db.models.functions import Now

from jobs.decisions import Failed, Succeeded
from jobs.models import (
    NOTICES_QUEUE,
    Job,
    JobStat,
    LeaderTerm,
    ScheduledJob,
    ScheduleFire,
    Worker,
)
from jobs.services.alert_rules import create_rule
from jobs.services.firing import fire_due
from jobs.services.schedules import create_schedule
from jobs.services.statistics import fold_all, look_at_all_queues
from jobs.services.workers import retire_silent
from scheduler_project.lib.sql import database_now
from tests.factories import claim_one, end, job_in, make_job

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
    return database_now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)


FAULTS = [FailureRate, OldestAge, DeadLetterGrowth, WorkerLost, ScheduleLate, ScheduleMissed, NoLeader]
