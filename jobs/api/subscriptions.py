"""Event subscriptions: create, list, look at, change, delete, and try."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.models import EventSubscription, EventType
from jobs.models.outgoing import MAX_URL_CHARS
from jobs.selectors.alerts import get_subscription, list_subscriptions
from jobs.services.outgoing import send_test
from jobs.services.subscriptions import (
    MAX_NAME_CHARS,
    create_subscription,
    delete_subscription,
    update_subscription,
)
from orgs.access import Actor, Machine, get_project, project_of_new
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Role
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.fields import Bool, Choice, Id, Input, Text
from scheduler_project.lib.rest.paging import OfProjectQuery
from scheduler_project.lib.rest.tags import (
    IF_MATCH_HEADER,
    IF_NONE_MATCH_HEADER,
    refuse_if_changed,
    tagged,
    unless_known,
)
from scheduler_project.lib.rest.views import ApiView, read_body, read_page, read_patch


class SubscriptionPatch(Input):
    name = Text(max_length=MAX_NAME_CHARS)
    url = Text(max_length=MAX_URL_CHARS)
    types = serializers.ListField(child=Choice(choices=EventType.values), min_length=1, max_length=len(EventType))
    is_active = Bool(required=False, default=True)


class SubscriptionInput(SubscriptionPatch):
    project_id = Id(required=False)


class SubscriptionOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    name = serializers.CharField()
    url = serializers.CharField()
    types = serializers.ListField(child=serializers.CharField())
    is_active = serializers.BooleanField()
    last_error = serializers.CharField(allow_blank=True)
    last_error_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class TestDeliveryOutput(serializers.Serializer[Any]):
    job_id = serializers.UUIDField()


class SubscriptionsView(ApiView):
    @describe({201: SubscriptionOutput}, body=SubscriptionInput)
    def post(self, request: Request) -> Response:
        fields, actor = read_body(request, SubscriptionInput), actor_of(request)
        project = project_of_new(actor, fields.pop("project_id", None), needs=Role.ADMIN)
        by = None if isinstance(actor, Machine) else actor.user_id
        with deed(actor, "event_subscription.create") as doing:
            made = create_subscription(project, by=by, **fields)
            doing.on(made)
        made.refresh_from_db()
        return tagged(_shown(made), status=201)

    @describe({200: page_of(SubscriptionOutput)}, query=OfProjectQuery)
    def get(self, request: Request) -> Response:
        query, window = read_page(request, OfProjectQuery)
        actor, project_id = actor_of(request), query.get("project_id")
        if project_id is not None:
            get_project(actor, project_id, needs=Role.VIEWER)
        return Response(window.page(window.read(list_subscriptions(actor, project_id)), _shown))


class SubscriptionView(ApiView):
    @describe({200: SubscriptionOutput, 304: None}, headers=IF_NONE_MATCH_HEADER)
    def get(self, request: Request, subscription_id: UUID) -> Response:
        return unless_known(request, _shown(get_subscription(actor_of(request), subscription_id, needs=Role.VIEWER)))

    @describe({200: SubscriptionOutput}, patch=SubscriptionPatch, headers=IF_MATCH_HEADER)
    def patch(self, request: Request, subscription_id: UUID) -> Response:
        changes, actor = read_patch(request, SubscriptionPatch), actor_of(request)
        with transaction.atomic():
            found = _locked(actor, subscription_id)
            refuse_if_changed(request, _shown(found))
            with deed(actor, "event_subscription.update", found):
                update_subscription(found, **changes)
        return tagged(_shown(found))

    @describe({204: None}, headers=IF_MATCH_HEADER)
    def delete(self, request: Request, subscription_id: UUID) -> Response:
        actor = actor_of(request)
        with transaction.atomic():
            found = _locked(actor, subscription_id)
            refuse_if_changed(request, _shown(found))
            with deed(actor, "event_subscription.delete", found, is_end=True):
                delete_subscription(found)
        return Response(status=204)


class TestDeliveryView(ApiView):
    @describe({202: TestDeliveryOutput})
    def post(self, request: Request, subscription_id: UUID) -> Response:
        found = get_subscription(actor_of(request), subscription_id, needs=Role.ADMIN)
        return Response({"job_id": send_test(found)}, status=202)


def _locked(actor: Actor, subscription_id: UUID) -> EventSubscription:
    # Sought before, so that strangers lock nothing.
    get_subscription(actor, subscription_id, needs=Role.ADMIN)
    return get_subscription(actor, subscription_id, needs=Role.ADMIN, is_locked=True)


def _shown(subscription: EventSubscription) -> dict[str, Any]:
    return dict(SubscriptionOutput(subscription).data)
