"""Retry policies: create, list, look at, delete."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from orgs.access import get_project
from orgs.authentication import actor_of
from orgs.models import Role
from queues.api.queues import project_of
from queues.api.serializers import OfProjectQuery, RetryPolicyInput, RetryPolicyOutput
from queues.selectors import get_retry_policy, list_retry_policies
from queues.services import create_retry_policy, delete_retry_policy
from scheduler_project.lib.rest.paging import Window
from scheduler_project.lib.rest.views import ApiView, read_body, read_query


class RetryPoliciesView(ApiView):
    def post(self, request: Request) -> Response:
        fields = read_body(request, RetryPolicyInput)
        policy = create_retry_policy(project_of(actor_of(request), fields), **fields)
        return Response(RetryPolicyOutput(policy).data, status=201)

    def get(self, request: Request) -> Response:
        query, actor = read_query(request, OfProjectQuery), actor_of(request)
        project_id = query.get("project_id")
        if project_id is not None:
            get_project(actor, project_id, needs=Role.VIEWER)
        window = Window.of(query)
        rows = list(list_retry_policies(actor, project_id)[window.rows])
        return Response(window.page(rows, lambda policy: RetryPolicyOutput(policy).data))


class RetryPolicyView(ApiView):
    def get(self, request: Request, policy_id: UUID) -> Response:
        return Response(RetryPolicyOutput(get_retry_policy(actor_of(request), policy_id, needs=Role.VIEWER)).data)

    def delete(self, request: Request, policy_id: UUID) -> Response:
        delete_retry_policy(get_retry_policy(actor_of(request), policy_id, needs=Role.ADMIN))
        return Response(status=204)
