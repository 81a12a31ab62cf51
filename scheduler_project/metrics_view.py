"""/metrics of the web process: what all its workers counted, and what the database says at this moment."""

from __future__ import annotations

import hmac
import os

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest, multiprocess

from jobs.selectors.metrics import DatabaseMetrics

_DATABASE = DatabaseMetrics()


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The text format of Prometheus; 401 if APP_METRICS_TOKEN is set and the request does not bear it."""
    if settings.METRICS_TOKEN and not _bears(request, settings.METRICS_TOKEN):
        return HttpResponse(status=401, headers={"WWW-Authenticate": 'Bearer realm="metrics"'})
    registry = CollectorRegistry()
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(REGISTRY)
    registry.register(_DATABASE)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _bears(request: HttpRequest, token: str) -> bool:
    given = request.headers.get("Authorization", "").encode(errors="replace")
    return hmac.compare_digest(given, f"Bearer {token}".encode())
