"""Alert rules: create, list, look at, change, delete; and what fired, when, and when it was over."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.models import Alert, AlertRule
from jobs.models.alert import MAX_EMAILS
from jobs.models.outgoing import MAX_URL_CHARS
from jobs.selectors.alerts import get_alert, get_rule, list_alerts, list_rules
from jobs.services.alert_rules import MAX_NAME_CHARS, create_rule, delete_rule, update_rule
from orgs.access import Actor, Machine, get_project, project_of_new
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Role
from scheduler_project.lib.errors import Forbidden
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.fields import Bool, Choice, Email, Id, Input, Number, Text, Whole
from scheduler_project.lib.rest.paging import OfProjectQuery
from scheduler_project.lib.rest.tags import (
    IF_MATCH_HEADER,
    IF_NONE_MATCH_HEADER,
    refuse_if_changed,
    tagged,
    unless_known,
)
from scheduler_project.lib.rest.views import ApiView, read_body, read_page, read_patch

# The numbers' bounds stand in jobs.services.alert_rules, which answers for both doors.


class RulePatch(Input):
    name = Text(max_length=MAX_NAME_CHARS)
    scope = Choice(choices=AlertRule.Scope.values, required=False)
    queue_id = Id(required=False, allow_null=True)
    threshold = Number()
    window_secs = Whole(required=False)
    for_secs = Whole(required=False)
    min_attempts = Whole(required=False)
    webhook_url = Text(max_length=MAX_URL_CHARS, required=False, allow_blank=True)
    emails = serializers.ListField(child=Email(), required=False, max_length=MAX_EMAILS)
    is_enabled = Bool(required=False, default=True)


class RuleInput(RulePatch):
    kind = Choice(choices=AlertRule.Kind.values)  # only here: what a rule measures never changes
    project_id = Id(required=False)


class AlertsQuery(OfProjectQuery):
    rule_id = Id(required=False)
    state = Choice(choices=Alert.State.values, required=False)


class RuleOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.CharField()
    scope = serializers.CharField()
    queue_id = serializers.UUIDField(allow_null=True)
    threshold = serializers.FloatField()
    window_secs = serializers.IntegerField()
    for_secs = serializers.IntegerField()
    min_attempts = serializers.IntegerField()
    webhook_url = serializers.CharField(allow_blank=True)
    emails = serializers.ListField(child=serializers.CharField())
    is_enabled = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class AlertOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project_id = serializers.UUIDField()
    rule_id = serializers.UUIDField()
    rule_name = serializers.CharField()
    kind = serializers.CharField()
    state = serializers.CharField()
    value = serializers.FloatField()
    threshold = serializers.FloatField()
    details = serializers.DictField()
    since = serializers.DateTimeField()
    fired_at = serializers.DateTimeField(allow_null=True)
    resolved_at = serializers.DateTimeField(allow_null=True)
    resolution = serializers.CharField(allow_blank=True)


class RulesView(ApiView):
    @describe({201: RuleOutput}, body=RuleInput)
    def post(self, request: Request) -> Response:
        fields, actor = read_body(request, RuleInput), actor_of(request)
        project = project_of_new(actor, fields.pop("project_id", None), needs=Role.ADMIN)
        _stay_in_project(actor, fields.get("scope"))
        by = None if isinstance(actor, Machine) else actor.user_id
        with deed(actor, "alert_rule.create") as doing:
            made = create_rule(project, by=by, **fields)
            doing.on(made)
        made.refresh_from_db()
        return tagged(_rule(made), status=201)

    @describe({200: page_of(RuleOutput)}, query=OfProjectQuery)
    def get(self, request: Request) -> Response:
        query, window = read_page(request, OfProjectQuery)
        actor, project_id = actor_of(request), query.get("project_id")
        if project_id is not None:
            get_project(actor, project_id, needs=Role.VIEWER)
        return Response(window.page(window.read(list_rules(actor, project_id)), _rule))


class RuleView(ApiView):
    @describe({200: RuleOutput, 304: None}, headers=IF_NONE_MATCH_HEADER)
    def get(self, request: Request, rule_id: UUID) -> Response:
        return unless_known(request, _rule(get_rule(actor_of(request), rule_id, needs=Role.VIEWER)))

    @describe({200: RuleOutput}, patch=RulePatch, headers=IF_MATCH_HEADER)
    def patch(self, request: Request, rule_id: UUID) -> Response:
        changes, actor = read_patch(request, RulePatch), actor_of(request)
        with transaction.atomic():
            rule = _locked(actor, rule_id)
            _stay_in_project(actor, changes.get("scope"))
            refuse_if_changed(request, _rule(rule))
            with deed(actor, "alert_rule.update", rule):
                update_rule(rule, **changes)
        return tagged(_rule(rule))

    @describe({204: None}, headers=IF_MATCH_HEADER)
    def delete(self, request: Request, rule_id: UUID) -> Response:
        actor = actor_of(request)
        with transaction.atomic():
            rule = _locked(actor, rule_id)
            refuse_if_changed(request, _rule(rule))
            with deed(actor, "alert_rule.delete", rule, is_end=True):
                delete_rule(rule)
        return Response(status=204)


class AlertsView(ApiView):
    @describe({200: page_of(AlertOutput)}, query=AlertsQuery)
    def get(self, request: Request) -> Response:
        query, window = read_page(request, AlertsQuery)
        actor, project_id = actor_of(request), query.get("project_id")
        if project_id is not None:
            get_project(actor, project_id, needs=Role.VIEWER)
        found = list_alerts(actor, project_id, rule_id=query.get("rule_id"), state=query.get("state"))
        return Response(window.page(window.read(found), _alert))


class AlertView(ApiView):
    @describe({200: AlertOutput})
    def get(self, request: Request, alert_id: UUID) -> Response:
        return Response(_alert(get_alert(actor_of(request), alert_id, needs=Role.VIEWER)))


def _locked(actor: Actor, rule_id: UUID) -> AlertRule:
    # Sought before, so that strangers lock nothing.
    get_rule(actor, rule_id, needs=Role.ADMIN)
    rule = get_rule(actor, rule_id, needs=Role.ADMIN, is_locked=True)
    _stay_in_project(actor, rule.scope)
    return rule


def _stay_in_project(actor: Actor, scope: str | None) -> None:
    """A key sees its project: through a rule of the whole organization it would learn of the others."""
    if scope == AlertRule.Scope.ORGANIZATION and isinstance(actor, Machine):
        raise Forbidden("Rules of the whole organization are for people; sign in.")


def _rule(rule: AlertRule) -> dict[str, Any]:
    return dict(RuleOutput(rule).data)


def _alert(alert: Alert) -> dict[str, Any]:
    return dict(AlertOutput(alert).data)
