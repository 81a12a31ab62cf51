"""Who works now."""

from __future__ import annotations

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import JSONObject

from jobs.models import Worker, WorkerHeartbeat


def list_alive_workers() -> QuerySet[Worker]:
    """Workers that have neither left nor been given up, by host; each with its ``latest`` heartbeat, None if none."""
    latest = WorkerHeartbeat.objects.filter(worker=OuterRef("pk")).order_by("-ts")
    shown = JSONObject(active_job_count="active_job_count", cpu_percent="cpu_percent", memory_mb="memory_mb")
    alive = Worker.objects.filter(status__in=[Worker.Status.ACTIVE, Worker.Status.DRAINING])
    return alive.annotate(latest=Subquery(latest.values_list(shown)[:1])).order_by("hostname", "pid", "id")
