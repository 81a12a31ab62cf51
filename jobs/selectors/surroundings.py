"""What stands around every page of a project: the counts of its navigation, and where else one may go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import IntegerField, Subquery
from django.db.models.functions import JSONObject

from dlq.models import DeadLetter
from jobs.models import ScheduledJob
from jobs.selectors.dashboard import alive
from orgs.access import Actor
from orgs.models import Project
from orgs.selectors import list_projects
from queues.models import Queue

MOST_COUNTED, MOST_PROJECTS = 1_000, 100


@dataclass(frozen=True, slots=True)
class Place:
    """A project somebody sees, by name."""

    pk: UUID
    name: str
    slug: str
    organization_name: str
    organization_slug: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``counts``: queues, workers, active schedules and open dead letters, each up to MOST_COUNTED."""

    counts: dict[str, int]
    places: list[Place]


class _Count(Subquery):
    template = "(SELECT count(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()


def surroundings(project_id: UUID, actor: Actor) -> Surroundings:
    """Those of a project, for somebody who looks at it. One statement: every page has it."""
    letters = DeadLetter.objects.filter(queue__project=project_id, queue__deleted_at=None, resolved=False)
    rows: dict[str, Any] = {
        "queues": Queue.objects.filter(project=project_id, deleted_at=None),
        "workers": alive(project_id),
        "schedules": ScheduledJob.objects.filter(project=project_id, is_active=True),
        "dead": letters,
    }
    counted = {f"n_{name}": _Count(found.order_by().values("pk")[:MOST_COUNTED]) for name, found in rows.items()}
    place = JSONObject(
        pk="id",
        name="name",
        slug="slug",
        organization_name="organization__name",
        organization_slug="organization__slug",
    )
    mine = list_projects(actor).order_by("organization__name", "name").values_list(place)
    found: Any = Project.objects.filter(pk=project_id).annotate(**counted, places=ArraySubquery(mine[:MOST_PROJECTS]))
    row = found.values(*counted, "places").first() or {"places": []}
    places = [Place(**{**one, "pk": UUID(one["pk"])}) for one in row["places"]]
    return Surroundings({name: row.get(f"n_{name}", 0) for name in rows}, places)
