"""Dead letters: list, look at, decide."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from dlq.api.serializers import LetterDetailOutput, LetterOutput, LettersQuery, ResolveInput
from dlq.selectors import get_letter, list_letters
from jobs.services.dead_letters import resolve_letter
from orgs.access import Person
from orgs.authentication import actor_of
from orgs.models import Role
from queues.selectors import get_queue
from scheduler_project.lib.rest.paging import Window
from scheduler_project.lib.rest.views import ApiView, read_body, read_query


class LettersView(ApiView):
    def get(self, request: Request) -> Response:
        query, actor = read_query(request, LettersQuery), actor_of(request)
        queue_id = query.get("queue_id")
        if queue_id is not None:
            get_queue(actor, queue_id, needs=Role.VIEWER)
        letters = list_letters(actor, queue_id=queue_id, resolved=query["resolved"])
        window = Window.of(query)
        return Response(window.page(list(letters[window.rows]), lambda letter: LetterOutput(letter).data))


class LetterView(ApiView):
    def get(self, request: Request, letter_id: UUID) -> Response:
        return Response(LetterDetailOutput(get_letter(actor_of(request), letter_id, needs=Role.VIEWER)).data)


class ResolveView(ApiView):
    def post(self, request: Request, letter_id: UUID) -> Response:
        action, actor = read_body(request, ResolveInput)["action"], actor_of(request)
        letter = get_letter(actor, letter_id, needs=Role.MEMBER)
        job_id = resolve_letter(letter, action, by=actor.user_id if isinstance(actor, Person) else None)
        shown = {"id": str(letter.pk), "resolution_action": action, "job_id": None if job_id is None else str(job_id)}
        return Response(shown)
