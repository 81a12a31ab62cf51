"""Sign up, sign in, stay signed in."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.serializers import CredentialsInput, RefreshInput, RegisterInput, TokensOutput, UserOutput
from accounts.services import log_in, register_user
from accounts.tokens import TokenPair, issue, rotate
from scheduler_project.lib.rest.views import ApiView, read_body


class PublicView(ApiView):
    authentication_classes = ()
    permission_classes = ()


class RegisterView(PublicView):
    def post(self, request: Request) -> Response:
        user = register_user(**read_body(request, RegisterInput))
        answer = _tokens(issue(user), status=201)
        answer.data["user"] = UserOutput(user).data
        return answer


class LoginView(PublicView):
    def post(self, request: Request) -> Response:
        return _tokens(issue(log_in(**read_body(request, CredentialsInput))))


class RefreshView(PublicView):
    def post(self, request: Request) -> Response:
        return _tokens(rotate(read_body(request, RefreshInput)["refresh"]))


def _tokens(pair: TokenPair, status: int = 200) -> Response:
    shown = {"token_type": "Bearer", **TokensOutput(pair).data}
    return Response(shown, status=status, headers={"Cache-Control": "no-store"})
