"""/healthz: this process answers. /readyz: so does its database, with the tables the code expects."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from scheduler_project.lib.database import find_problem
from scheduler_project.lib.tzdata import tzdata_version


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Always 200: a database outage is no reason to restart the process."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when requests can be served, else 503 with the reason."""
    problem = find_problem()
    if problem is None:
        return JsonResponse({"status": "ready", "tzdata": tzdata_version()})
    return JsonResponse({"status": "not ready", "reason": problem}, status=503, headers={"Retry-After": "2"})
