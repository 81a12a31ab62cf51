"""Dead letters: list, look at, decide."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from dlq.api.serializers import LetterDetailOutput, LetterOutput, LettersQuery, ResolvedOutput, ResolveInput
from dlq.selectors import get_letter, list_letters
from jobs.services.dead_letters import resolve_letter
from orgs.access import Person
from orgs.audit import deed
from orgs.authentication import actor_of
from orgs.models import Role
from queues.selectors import get_queue
from scheduler_project.lib.rest.describe import describe, page_of
from scheduler_project.lib.rest.views import ApiView, read_body, read_page


class LettersView(ApiView):
    @describe({200: page_of(LetterOutput)}, query=LettersQuery)
    def get(self, request: Request) -> Response:
        (query, window), actor = read_page(request, LettersQuery), actor_of(request)
        queue_id = query.get("queue_id")
        if queue_id is not None:
            get_queue(actor, queue_id, needs=Role.VIEWER)
        letters = list_letters(actor, queue_id=queue_id, resolved=query["resolved"])
        return Response(window.page(window.read(letters), LetterOutput().to_representation))


class LetterView(ApiView):
    @describe({200: LetterDetailOutput})
    def get(self, request: Request, letter_id: UUID) -> Response:
        return Response(LetterDetailOutput(get_letter(actor_of(request), letter_id, needs=Role.VIEWER)).data)


class ResolveView(ApiView):
    @describe({200: ResolvedOutput}, body=ResolveInput)
    def post(self, request: Request, letter_id: UUID) -> Response:
        action, actor = read_body(request, ResolveInput)["action"], actor_of(request)
        letter = get_letter(actor, letter_id, needs=Role.MEMBER)
        by = actor.user_id if isinstance(actor, Person) else None
        with deed(actor, "dead_letter.resolve", letter) as doing:
            job_id = resolve_letter(letter, action, by=by)
            doing.says(action=action, job_id=job_id)
        shown = {"id": str(letter.pk), "resolution_action": action, "job_id": None if job_id is None else str(job_id)}
        return Response(shown)
