"""Event subscriptions: create, change, delete. Whether the caller may is settled before."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from jobs.models import EventSubscription, EventType
from jobs.services.notices import check_url
from orgs.models import Project
from scheduler_project.lib.constraints import refusals, taken
from scheduler_project.lib.errors import Conflict, NotFound, ValidationFailed
from scheduler_project.lib.text import clean_name

MAX_NAME_CHARS, MOST = 100, 20
_TAKEN = {"event_subscriptions_name_in_project": taken("name", "is the name of another subscription of this project")}


def create_subscription(
    project: Project, *, name: str, url: str, types: list[str], by: UUID | None, is_active: bool = True
) -> EventSubscription:
    """A new subscription.

    Raises:
        ValidationFailed: naming the field and what is allowed.
        Conflict: the name is taken, or the project has as many as it may.
    """
    checked = _checked({"name": name, "url": url, "types": types, "is_active": is_active})
    with refusals(_TAKEN):
        # Of two who create at once the second waits here and counts the first one's.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if EventSubscription.objects.filter(project=project).count() >= MOST:
            raise Conflict(f"The project has {MOST} subscriptions; delete one first.")
        return EventSubscription.objects.create(project=project, created_by_id=by, **checked)


def update_subscription(subscription: EventSubscription, **changes: Any) -> EventSubscription:
    """Change name, url, types or is_active. Switched on again, it has a clean slate.

    Raises:
        ValidationFailed, Conflict: as ``create_subscription``.
        NotFound: somebody deleted it meanwhile.
    """
    checked = _checked(changes)
    for field, value in checked.items():
        setattr(subscription, field, value)
    if checked.get("is_active") or "url" in checked:
        subscription.last_error, subscription.last_error_at = "", None
    fields = [*checked, "last_error", "last_error_at", "updated_at"]
    with refusals(_TAKEN):
        if not EventSubscription.objects.filter(pk=subscription.pk).exists():
            raise NotFound("There is no such subscription.")
        subscription.save(update_fields=fields)
    return subscription


def delete_subscription(subscription: EventSubscription) -> None:
    """Delete it; deliveries that are jobs by now still go out. Raises NotFound if it is gone already."""
    if not EventSubscription.objects.filter(pk=subscription.pk).delete()[0]:
        raise NotFound("There is no such subscription.")


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    found = dict(given)
    if "name" in found:
        found["name"] = clean_name(found["name"], "name", MAX_NAME_CHARS)
    if "url" in found:
        check_url(found["url"], "url")
    if "types" in found:
        known = EventType.values
        if not found["types"] or set(found["types"]) - set(known):
            raise ValidationFailed.of("types", f"must name at least one of {', '.join(known)}, and no other")
        found["types"] = [type_ for type_ in known if type_ in found["types"]]
    return found
