"""/healthz: this process answers. /readyz: so does its database; and whether the work is being done."""

from __future__ import annotations

import threading
import time

from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from jobs.selectors.condition import Condition, condition
from scheduler_project.lib.database import drop_broken_connection, find_problem
from scheduler_project.lib.tzdata import tzdata_version

#: Probes come often; the condition changes slowly.
KEPT_S = 5.0


class _Kept:
    """The condition as it was a moment ago."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = float("-inf")
        self._found = Condition("ready")

    def now(self) -> Condition:
        """At most KEPT_S old; of several who ask one looks."""
        with self._lock:
            if time.monotonic() - self._at > KEPT_S:
                self._found, self._at = condition(), time.monotonic()
            return self._found

    def forget(self) -> None:
        """Look again at the next question."""
        self._at = float("-inf")


kept = _Kept()


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Always 200: a database outage is no reason to restart the process."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when requests can be served, else 503 with the reason.

    Requests can be served also while nobody works: taking the pages and the API away would make it worse. So
    "degraded" and "stalled" are 200 too, for people and monitors to see.
    """
    problem = find_problem()
    if problem is None:
        try:
            found = kept.now()
            answer = {"status": found.status, "reasons": list(found.reasons), "tzdata": tzdata_version()}
            return JsonResponse(answer)
        except DatabaseError as error:
            drop_broken_connection()
            problem = f"the database can not be reached ({type(error).__name__})"
    return JsonResponse({"status": "not ready", "reason": problem}, status=503, headers={"Retry-After": "2"})
