"""Retry policies: create, list, look at, change, delete."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from orgs.access import Actor, get_project, project_of_new
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Role
from queues.api.serializers import RetryPolicyInput, RetryPolicyOutput, RetryPolicyPatch
from queues.models import RetryPolicy
from queues.selectors import get_retry_policy, list_retry_policies
from queues.services import create_retry_policy, delete_retry_policy, update_retry_policy
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.paging import OfProjectQuery
from scheduler_project.lib.rest.tags import (
    IF_MATCH_HEADER,
    IF_NONE_MATCH_HEADER,
    refuse_if_changed,
    tagged,
    unless_known,
)
from scheduler_project.lib.rest.views import ApiView, read_body, read_page, read_patch


class RetryPoliciesView(ApiView):
    @describe({201: RetryPolicyOutput}, body=RetryPolicyInput)
    def post(self, request: Request) -> Response:
        fields, actor = read_body(request, RetryPolicyInput), actor_of(request)
        project = project_of_new(actor, fields.pop("project_id", None), needs=Role.ADMIN)
        with deed(actor, "retry_policy.create") as doing:
            policy = create_retry_policy(project, **fields)
            doing.on(policy)
        return tagged(_shown(policy), status=201)

    @describe({200: page_of(RetryPolicyOutput)}, query=OfProjectQuery)
    def get(self, request: Request) -> Response:
        query, window = read_page(request, OfProjectQuery)
        actor, project_id = actor_of(request), query.get("project_id")
        if project_id is not None:
            get_project(actor, project_id, needs=Role.VIEWER)
        return Response(window.page(window.read(list_retry_policies(actor, project_id)), _shown))


class RetryPolicyView(ApiView):
    @describe({200: RetryPolicyOutput, 304: None}, headers=IF_NONE_MATCH_HEADER)
    def get(self, request: Request, policy_id: UUID) -> Response:
        return unless_known(request, _shown(get_retry_policy(actor_of(request), policy_id, needs=Role.VIEWER)))

    @describe({200: RetryPolicyOutput}, patch=RetryPolicyPatch, headers=IF_MATCH_HEADER)
    def patch(self, request: Request, policy_id: UUID) -> Response:
        changes, actor = read_patch(request, RetryPolicyPatch), actor_of(request)
        with transaction.atomic():
            policy = _locked(actor, policy_id)
            refuse_if_changed(request, _shown(policy))
            with deed(actor, "retry_policy.update", policy):
                update_retry_policy(policy, **changes)
        return tagged(_shown(policy))

    @describe({204: None}, headers=IF_MATCH_HEADER)
    def delete(self, request: Request, policy_id: UUID) -> Response:
        actor = actor_of(request)
        with transaction.atomic():
            policy = _locked(actor, policy_id)
            refuse_if_changed(request, _shown(policy))
            with deed(actor, "retry_policy.delete", policy, is_end=True):
                delete_retry_policy(policy)
        return Response(status=204)


def _locked(actor: Actor, policy_id: UUID) -> RetryPolicy:
    get_retry_policy(actor, policy_id, needs=Role.ADMIN)
    return get_retry_policy(actor, policy_id, needs=Role.ADMIN, is_locked=True)


def _shown(policy: RetryPolicy) -> dict[str, Any]:
    shown: dict[str, Any] = RetryPolicyOutput(policy).data
    return shown
