"""Secrets in the payloads of jobs that workers over HTTP run: these get them in the clear, as any worker does."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import Q

from jobs.handlers.registry import list_handlers
from jobs.models import Job
from scheduler_project.lib import logs, sealed_json, secretbox
from scheduler_project.lib.scrub import Scrubber

log = logs.get(__name__)


def in_the_clear(job_id: UUID, payload: Any) -> Any:
    """The payload for the worker; its secrets stay masked if this process has not the key, an operator's fault."""
    try:
        return sealed_json.opened(payload).value
    except secretbox.Sealed as error:
        log.error("payload_not_opened", job_id=str(job_id), error=str(error))
        return sealed_json.masked(payload)


def scrubbers(project_id: UUID, job_ids: Collection[UUID]) -> dict[UUID, Scrubber]:
    """What blots the secrets out of what a worker says of its jobs; only of those that have any."""
    types = [found.job_type for found in list_handlers() if found.payload.secrets]
    if not types or not job_ids:
        return {}
    is_secret = Q(job_type__in=types)
    for pattern in types:
        is_secret |= Q(job_type__startswith=pattern[:-1]) if pattern.endswith("*") else Q()
    rows = Job.objects.filter(is_secret, project_id=project_id, id__in=job_ids).values_list("id", "payload")
    found = {}
    for job_id, payload in rows:
        try:
            opened = sealed_json.opened(payload)
        except secretbox.Sealed:
            continue  # the worker never had them either
        if opened.secrets:
            found[job_id] = Scrubber(opened.secrets)
    return found
