"""A project in which every page has something to show, made by the product's own services."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import F
from django.db.models.functions import Now

from accounts.models import User
from dlq.models import DeadLetter
from jobs.decisions import Failed, Succeeded
from jobs.lifecycle.graph import After, Node, submit_graph
from jobs.lifecycle.submit import NewJob
from jobs.models import (
    WHOLE_PROJECT,
    CircuitBreaker,
    Job,
    JobExecution,
    JobLog,
    JobStatDelta,
    QueueDepth,
    Worker,
)
from jobs.services.alert_rules import create_rule
from jobs.services.batches import add_jobs, create_batch
from jobs.services.operations import NewOperation, prepare, start
from jobs.services.schedules import create_schedule, trigger
from jobs.services.statistics import fold_all, look_at_all_queues
from jobs.services.subscriptions import create_subscription
from orgs.access import Person
from orgs.audit import deed
from orgs.services import create_api_key
from orgs.webhook_secrets import create_secret
from queues.models import Queue
from queues.services import create_retry_policy, pause_queue
from scheduler_project.lib.sql import database_now
from tests.factories import claim_from, claim_one, end, job_in, make_queue


def furnish(queue: Queue, owner: User) -> dict[str, str]:
    """Fill the queue's project; the paths of its pages by name, below that of the project."""
    project, call = queue.project, NewJob
    done = _give_history(make_queue(project, name="thumbnails"))
    create_api_key(project, name="deploy", by=owner.pk)
    create_secret(project, by=owner.pk)
    policy = create_retry_policy(project, name="gentle", base_delay_ms=30_000, max_attempts=8)
    make_queue(project, name="mail", max_concurrency=4, default_retry_policy=policy)
    paused = make_queue(project, name="reports")
    with deed(Person(owner.pk), "queue.pause", paused):
        pause_queue(paused, reason="the warehouse moves")
    for status in ("scheduled", "queued", "running", "failed", "cancelled"):
        job_in(status, make_queue(project, name=f"of-{status}"), payload={"order": "A-1001", "lines": [1, 2, 3]})
    dead = job_in("dead_letter", make_queue(project, name="webhooks")).job
    names = {"fetch": [], "index": [f"resize{i}" for i in range(9)], "publish": ["index"]} | {
        f"resize{i}": ["fetch"] for i in range(9)
    }
    made = submit_graph([
        Node(name, queue, call(job_type=name.rstrip("0123456789"), max_attempts=1), [After(ref) for ref in refs])
        for name, refs in names.items()
    ])  # fmt: skip
    [lease] = claim_from(queue)
    end(lease, Succeeded('{"pages":3}'))
    leases = claim_from(queue, 2)
    end(leases[0], Failed("out of paper"))
    batch = create_batch(project.pk, "Nightly invoices",
                         callbacks={"on_end": {"queue_id": str(queue.pk), "job_type": "noop"}})  # fmt: skip
    add_jobs(batch.pk, paused, [call(job_type="invoice")] * 5)
    schedule = create_schedule(queue, name="nightly", cron_expression="0 3 * * *", job_type="noop")
    trigger(schedule.pk)
    now: Any = database_now()
    CircuitBreaker.objects.create(project_id=project.pk, name="hooks.example", state="open", recent="0011111",
                                  opened_at=now)  # fmt: skip
    Worker.objects.create(project=project, hostname="far", pid=7, version="1.0", max_concurrency=4)
    create_rule(project, by=None, name="Too many failures", kind="failure_rate", threshold=20, emails=["a@example.com"])
    url = "https://hooks.example.com/in"
    create_subscription(project, name="Chat", url=url, types=["job.dead_letter", "alert.fired"], by=None)
    fold_all()
    look_at_all_queues()
    _give_depths(done.queue)
    operation = start(
        prepare(project, NewOperation(action="cancel", filter={"queue_id": paused.pk}, reason="rendered elsewhere"))[0],
        by=owner.pk,
        api_key_id=None,
    )
    return {
        "dashboard": "", "queues": "queues", "queue": f"queues/{queue.pk}",
        "busy-queue": f"queues/{done.queue_id}", "jobs": "jobs", "job": f"jobs/{dead.pk}",
        "completed-job": f"jobs/{done.pk}",
        "workflows": "workflows", "workflow": f"workflows/{made['fetch'].id}", "batches": "batches",
        "batch": f"batches/{batch.pk}", "workers": "workers", "dead-letters": "dead-letter",
        "dead-letter-list": "dead-letter?view=list",
        "dead-letter": f"dead-letter/{DeadLetter.objects.get(job=dead).pk}", "schedules": "scheduled-jobs",
        "schedule": f"scheduled-jobs/{schedule.pk}", "retry-policies": "retry-policies",
        "retry-policy": f"retry-policies/{policy.pk}", "circuit-breakers": "circuit-breakers",
        "operations": "operations", "operation": f"operations/{operation.pk}", "proofs": "proofs",
        "settings": "settings", "members": "settings/members", "alerts": "settings/alerts",
        "event-webhooks": "settings/event-webhooks",
    }  # fmt: skip


def _give_history(queue: Queue) -> Job:
    """Half an hour of work, so that charts have something to draw; the last of its jobs, with a log."""
    for minute in range(1, 30, 2):
        is_bad = minute % 5 == 0
        made = job_in("failed" if is_bad else "queued", queue, job_type="image.resize", payload={"width": minute}).job
        if not is_bad:
            end(claim_one(queue), Succeeded('{"bytes": 48213}'), ran_ms=20.0 * minute)
        JobStatDelta.objects.filter(at__gte=made.created_at).update(at=F("at") - timedelta(minutes=30 - minute))
    [run] = JobExecution.objects.filter(job=made)
    lines = (("info", "fetched https://cdn.example.com/a.png"), ("warning", "the profile is missing, sRGB is taken"),
             ("error", "one of 3 sizes is larger than its source"), ("info", "wrote 3 sizes"))  # fmt: skip
    JobLog.objects.bulk_create(
        JobLog(execution_id=run.pk, job_id=made.pk, project_id=queue.project_id, ts=Now(), level=level, message=text)
        for level, text in lines
    )
    return made


def _give_depths(queue: Queue) -> None:
    """Half an hour in which the queue filled up and was worked off, without three minutes nobody counted."""
    at = database_now().replace(second=0, microsecond=0)
    QueueDepth.objects.bulk_create(
        QueueDepth(
            project_id=queue.project_id, queue_id=of, at=at - timedelta(minutes=ago), scheduled=more + ago // 2,
            ready=more + abs(ago % 16 - 8) * 5, in_flight=min(4, ago % 9), dead_letters=1,
        )
        for of, more in ((queue.pk, 0), (WHOLE_PROJECT, 3))
        for ago in range(1, 31)
        if ago not in (12, 13, 14)
    )  # fmt: skip


#: What not everybody may open, with the lowest role that may.
FOR_MEMBERS = {"new-job": "jobs/new"}
FOR_ADMINS = {
    "new-queue": "queues/new", "new-schedule": "scheduled-jobs/new", "new-policy": "retry-policies/new",
    "new-alert-rule": "settings/alerts/new", "new-event-webhook": "settings/event-webhooks/new",
    "audit-log": "audit-log", "api-keys": "settings/api-keys", "webhook-secrets": "settings/webhook-secrets",
    "egress": "settings/egress",
}  # fmt: skip
