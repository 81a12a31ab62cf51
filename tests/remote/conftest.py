"""A worker over HTTP, and the personas."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from orgs.models import ApiKey, Project
from scheduler_project.lib.ids import uuid7
from tests.personas import *  # noqa: F403
from tests.personas import Api, _without_collected_files, make_key  # noqa: F401


class RemoteWorker:
    """Speaks the protocol of docs/remote-workers.md with a key of the scope work."""

    def __init__(self, project: Project, scope: ApiKey.Scope = ApiKey.Scope.WORK) -> None:
        self.id = uuid7()
        self.api = Api(key=make_key(project, scope))

    def claim(self, **wish: Any) -> Any:
        """The answer to a claim."""
        return self.api.post("worker/claim", {"worker_id": str(self.id), **wish})

    def take(self, **wish: Any) -> list[dict[str, Any]]:
        """The jobs of a claim."""
        answer = self.claim(**wish)
        assert answer.status_code == 200, answer.content
        jobs: list[dict[str, Any]] = answer.json()["jobs"]
        return jobs

    def beat(self, *leases: dict[str, Any], **more: Any) -> Any:
        """The answer to a heartbeat; leases are jobs of a claim, with what is to be said of them."""
        named = [{**lease, "id": lease["id"], "lease_token": lease["lease_token"]} for lease in leases]
        return self.api.post("worker/heartbeat", {"worker_id": str(self.id), "leases": named, **more})

    def finish(self, *results: dict[str, Any]) -> Any:
        """The answer to the end of attempts."""
        return self.api.post("worker/finish", {"worker_id": str(self.id), "results": list(results)})


def proof(job: dict[str, Any]) -> dict[str, Any]:
    """What a worker shows to write on a job."""
    return {"id": job["id"], "lease_token": job["lease_token"]}


def ended(job: dict[str, Any], outcome: str = "completed", **more: Any) -> dict[str, Any]:
    """A result to send."""
    return {**proof(job), "outcome": outcome, **more}


def statuses(answer: Any) -> list[str]:
    """What became of each result."""
    assert answer.status_code == 200, answer.content
    return [item["status"] for item in answer.json()["results"]]


def lapse_all() -> None:
    """Let every lease run out now, and end the attempts."""
    from django.db.models.functions import Now

    from jobs.lifecycle.reap import reap_expired
    from jobs.models import Job

    Job.objects.in_flight().update(lease_expires_at=Now())
    reap_expired(limit=1_000)


def new_id() -> str:
    return str(UUID(str(uuid7())))


@pytest.fixture
def remote(project: Project) -> RemoteWorker:
    """A worker with a key of the scope work."""
    return RemoteWorker(project)
