"""What an actor sees of schedules."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from jobs.models import ScheduledJob
from orgs.access import Actor, get_visible, visible
from orgs.models import Role


def list_schedules(
    actor: Actor, *, project_id: UUID | None = None, queue_id: UUID | None = None, is_active: bool | None = None
) -> QuerySet[ScheduledJob]:
    """The schedules an actor sees, newest first, without their payloads."""
    schedules = visible(ScheduledJob.objects.defer("payload_template"), actor, "project").order_by("-id")
    if project_id is not None:
        schedules = schedules.filter(project_id=project_id)
    if queue_id is not None:
        schedules = schedules.filter(queue_id=queue_id)
    return schedules if is_active is None else schedules.filter(is_active=is_active)


def get_schedule(actor: Actor, schedule_id: UUID, *, needs: Role, is_locked: bool = False) -> ScheduledJob:
    """One schedule, its row locked until commit if asked for. Raises NotFound or Forbidden."""
    schedules = ScheduledJob.objects.filter(pk=schedule_id)
    if is_locked:
        schedules = schedules.select_for_update(no_key=True, of=("self",))
    return get_visible(schedules, actor, "project", needs=needs, what="schedule")
