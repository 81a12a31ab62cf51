"""After a change of APP_SECRET_KEY: what is stored sealed is sealed anew, step by step, so that old keys can go.

A step is one transaction over a few rows in the order of their ids. Stopped between two steps nothing is lost: what is
done is done, and a second run passes over it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import JSONField, Model, QuerySet, TextField, Value
from django.db.models.functions import Cast

from dlq.models import DeadLetter
from jobs.models import Job, JobBatch, ScheduledJob
from scheduler_project.lib import sealed_json, secretbox
from scheduler_project.lib.ids import LOWEST

STEP = 500


class Place(NamedTuple):
    """A column that may hold sealed values."""

    model: type[Model]
    column: str


#: The archive is left out: nothing ever opens it.
PLACES = (
    Place(Job, "payload"),
    Place(DeadLetter, "payload_snapshot"),
    Place(ScheduledJob, "payload_template"),
    Place(JobBatch, "on_success"),
    Place(JobBatch, "on_end"),
    Place(JobBatch, "on_failure"),
)


@dataclass(slots=True)
class Tally:
    """What a run has done: values sealed anew, those that were already, and those that no known key opens."""

    renewed: int = 0
    current: int = 0
    unopened: int = 0
    last_unopened: str = ""


def rotate(tally: Tally, *, step: int = STEP) -> Iterator[Tally]:
    """Seal everything with the present key; yields after each step, where the caller may stop."""
    for place in PLACES:
        after: UUID | None = LOWEST
        while after is not None:
            after = _step(place, after, step, tally)
            yield tally


def _step(place: Place, after: UUID, size: int, tally: Tally) -> UUID | None:
    """The next rows of a column; the last id, None at the end."""
    with transaction.atomic():
        rows = list(_sealed_rows(place).filter(pk__gt=after).select_for_update(no_key=True, of=("self",))[:size])
        for row in rows:
            _renew(place, row, tally)
    return rows[-1].pk if len(rows) == size else None


def _sealed_rows(place: Place) -> QuerySet[Any]:
    text = Cast(place.column, TextField())
    rows: QuerySet[Any] = place.model._default_manager.annotate(as_text=text)
    return rows.filter(as_text__contains=sealed_json.SIGN).only("pk", place.column).order_by("pk")


def _renew(place: Place, row: Any, tally: Tally) -> None:
    try:
        renewals = sealed_json.renewals(getattr(row, place.column))
    except secretbox.Sealed:
        tally.unopened += 1
        tally.last_unopened = f"{place.model._meta.db_table} {row.pk}"
        return
    if not renewals:
        tally.current += 1
        return
    text: str = row.as_text
    for old, new in renewals.items():
        text = text.replace(old, new)
    stored = Cast(Value(text, TextField()), JSONField())
    place.model._default_manager.filter(pk=row.pk).update(**{place.column: stored})
    tally.renewed += 1
