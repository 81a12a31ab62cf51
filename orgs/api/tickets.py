"""Tickets with which a browser opens a stream of live events."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from orgs.api.shapes import TicketOutput
from orgs.authentication import actor_of
from orgs.tickets import GOOD_FOR_S, issue_ticket
from scheduler_project.lib.rest.describe import describe
from scheduler_project.lib.rest.views import ApiView


class TicketsView(ApiView):
    @describe({201: TicketOutput})
    def post(self, request: Request) -> Response:
        ticket = issue_ticket(actor_of(request))
        return Response({"ticket": ticket, "expires_in": GOOD_FOR_S}, 201, headers={"Cache-Control": "no-store"})
