"""Who works now."""

from __future__ import annotations

from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject

from jobs.models import Worker, WorkerHeartbeat


def list_alive_workers(projects: QuerySet[Any, Any]) -> QuerySet[Worker]:
    """Workers that have neither left nor been given up, by host; each with its ``latest`` heartbeat, None if none.

    Our own, which serve all, and those over HTTP that belong to these projects.
    """
    latest = WorkerHeartbeat.objects.filter(worker=OuterRef("pk")).order_by("-ts")
    shown = JSONObject(active_job_count="active_job_count", cpu_percent="cpu_percent", memory_mb="memory_mb")
    seen = Q(project=None) | Q(project__in=projects)
    alive = Worker.objects.filter(seen, status__in=[Worker.Status.ACTIVE, Worker.Status.DRAINING])
    return alive.annotate(latest=Subquery(latest.values_list(shown)[:1])).order_by("hostname", "pid", "id")
