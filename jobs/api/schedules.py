"""Schedules: create, list, change, switch on and off, pause, resume, trigger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.answers import TriggeredOutput
from jobs.api.schedule_shapes import (
    ScheduleDetailOutput,
    ScheduleInput,
    ScheduleOutput,
    SchedulePauseInput,
    SchedulesQuery,
)
from jobs.api.serializers import EmptyInput
from jobs.models import ScheduledJob
from jobs.selectors.schedules import get_schedule, list_schedules
from jobs.services import schedules
from orgs.access import Actor, Person, get_project
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Role
from queues.models import Queue
from queues.selectors import get_queue, get_queue_by_path
from scheduler_project.lib.errors import NotFound, ValidationFailed
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.tags import (
    IF_MATCH_HEADER,
    IF_NONE_MATCH_HEADER,
    refuse_if_changed,
    tagged,
    unless_known,
)
from scheduler_project.lib.rest.views import ApiView, read_body, read_page, read_patch

#: What the scheduler writes: no change by a person.
_OF_THE_SYSTEM = frozenset({"next_run_at", "last_run_at", "last_error", "last_error_at", "created_at", "updated_at"})


class SchedulesView(ApiView):
    @describe(
        {201: ScheduleDetailOutput},
        body=ScheduleInput,
        example={"queue": "mail", "name": "nightly", "cron_expression": "0 3 * * *", "job_type": "report.send"},
    )
    def post(self, request: Request) -> Response:
        fields, actor = read_body(request, ScheduleInput), actor_of(request)
        queue = _queue_of(actor, fields)
        with deed(actor, "scheduled_job.create") as doing:
            schedule = schedules.create_schedule(queue, **fields)
            schedule.refresh_from_db()
            doing.on(schedule)
        answer = _tagged(schedule, status=201)
        answer["Location"] = f"/api/scheduled-jobs/{schedule.pk}"
        return answer

    @describe({200: page_of(ScheduleOutput)}, query=SchedulesQuery)
    def get(self, request: Request) -> Response:
        (query, window), actor = read_page(request, SchedulesQuery), actor_of(request)
        project_id, queue_id = query.get("project_id"), query.get("queue_id")
        if project_id is not None:
            get_project(actor, project_id, needs=Role.VIEWER)
        if queue_id is not None:
            get_queue(actor, queue_id, needs=Role.VIEWER)
        rows = list_schedules(actor, project_id=project_id, queue_id=queue_id, is_active=query["is_active"])
        return Response(window.page(window.read(rows), ScheduleOutput().to_representation))


class ScheduleView(ApiView):
    @describe({200: ScheduleDetailOutput, 304: None}, headers=IF_NONE_MATCH_HEADER)
    def get(self, request: Request, schedule_id: UUID) -> Response:
        schedule = get_schedule(actor_of(request), schedule_id, needs=Role.VIEWER)
        shown = ScheduleDetailOutput(schedule).data
        return unless_known(request, shown, settings=_settings_of(shown))

    @describe(
        {200: ScheduleDetailOutput},
        patch=ScheduleInput,
        headers=IF_MATCH_HEADER,
        example={"cron_expression": "30 3 * * *", "timezone": "Europe/Berlin"},
    )
    def patch(self, request: Request, schedule_id: UUID) -> Response:
        changes, actor = read_patch(request, ScheduleInput), actor_of(request)

        def change(schedule: ScheduledJob) -> ScheduledJob:
            if "queue" in changes or "queue_id" in changes:
                changes["queue"] = _new_queue(actor, changes)
            return schedules.update_schedule(schedule.pk, **changes)

        return _change(request, schedule_id, "update", change)


class ActivateView(ApiView):
    @describe({200: ScheduleDetailOutput}, body=EmptyInput, headers=IF_MATCH_HEADER)
    def post(self, request: Request, schedule_id: UUID) -> Response:
        read_body(request, EmptyInput)
        return _change(request, schedule_id, "activate", lambda schedule: schedules.activate(schedule.pk))


class DeactivateView(ApiView):
    @describe({200: ScheduleDetailOutput}, body=EmptyInput, headers=IF_MATCH_HEADER)
    def post(self, request: Request, schedule_id: UUID) -> Response:
        read_body(request, EmptyInput)
        return _change(request, schedule_id, "deactivate", lambda schedule: schedules.deactivate(schedule.pk))


class PauseView(ApiView):
    @describe({200: ScheduleDetailOutput}, body=SchedulePauseInput, headers=IF_MATCH_HEADER)
    def post(self, request: Request, schedule_id: UUID) -> Response:
        fields, actor = read_body(request, SchedulePauseInput), actor_of(request)
        by = actor.user_id if isinstance(actor, Person) else None
        return _change(request, schedule_id, "pause", lambda schedule: schedules.pause(schedule.pk, **fields, by=by))


class ResumeView(ApiView):
    @describe({200: ScheduleDetailOutput}, body=EmptyInput, headers=IF_MATCH_HEADER)
    def post(self, request: Request, schedule_id: UUID) -> Response:
        read_body(request, EmptyInput)
        return _change(request, schedule_id, "resume", lambda schedule: schedules.resume(schedule.pk))


class TriggerView(ApiView):
    @describe({201: TriggeredOutput}, body=EmptyInput)
    def post(self, request: Request, schedule_id: UUID) -> Response:
        read_body(request, EmptyInput)
        actor = actor_of(request)
        schedule = get_schedule(actor, schedule_id, needs=Role.MEMBER)
        with deed(actor, "scheduled_job.trigger", schedule) as doing:
            job_id = schedules.trigger(schedule_id)
            doing.says(job_id=job_id)
        return Response({"job_id": str(job_id)}, status=201, headers={"Location": f"/api/jobs/{job_id}"})


def _change(request: Request, schedule_id: UUID, verb: str, change: Callable[[ScheduledJob], ScheduledJob]) -> Response:
    """Change a schedule under its row's lock, unless it is no longer what the caller has seen."""
    actor = actor_of(request)
    get_schedule(actor, schedule_id, needs=Role.ADMIN)
    with transaction.atomic():
        schedule = get_schedule(actor, schedule_id, needs=Role.ADMIN, is_locked=True)
        refuse_if_changed(request, _settings_of(ScheduleDetailOutput(schedule).data))
        with deed(actor, f"scheduled_job.{verb}", schedule) as doing:
            changed = change(schedule)
            doing.on(changed)
    return _tagged(changed)


def _tagged(schedule: ScheduledJob, status: int = 200) -> Response:
    shown = ScheduleDetailOutput(schedule).data
    return tagged(shown, settings=_settings_of(shown), status=status)


def _settings_of(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name not in _OF_THE_SYSTEM}


def _queue_of(actor: Actor, fields: dict[str, Any]) -> Queue:
    """Takes the queue out of the fields and finds it."""
    path, queue_id = fields.pop("queue", None), fields.pop("queue_id", None)
    if path is not None:
        return get_queue_by_path(actor, path, needs=Role.ADMIN)
    return get_queue(actor, queue_id, needs=Role.ADMIN)


def _new_queue(actor: Actor, changes: dict[str, Any]) -> Queue:
    name = "queue" if "queue" in changes else "queue_id"
    try:
        return _queue_of(actor, changes)
    except NotFound:
        raise ValidationFailed.of(name, "there is no such queue in this project") from None
