"""Sign up, sign in, stay signed in."""

from __future__ import annotations

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.serializers import (
    CredentialsInput,
    PasswordInput,
    RefreshInput,
    RegisterInput,
    SignedInOutput,
    SignedUpOutput,
    TokensOutput,
    UserOutput,
)
from accounts.models import User
from accounts.services import change_password, log_in, register_user
from accounts.tokens import TokenPair, end_all_families, end_family, issue, rotate
from orgs.audit import place_of, record
from orgs.authentication import person_of
from orgs.selectors import list_organizations
from orgs.throttling import LoginThrottle
from scheduler_project.lib.rest.describe import describe
from scheduler_project.lib.rest.views import ApiView, read_body


class PublicView(ApiView):
    authentication_classes = ()
    permission_classes = ()


class RegisterView(PublicView):
    throttle_classes = (LoginThrottle,)

    @describe({201: SignedUpOutput}, body=RegisterInput)
    def post(self, request: Request) -> Response:
        user = register_user(**read_body(request, RegisterInput))
        answer = _tokens(issue(user), status=201)
        answer.data["user"] = UserOutput(user).data
        return answer


class LoginView(PublicView):
    throttle_classes = (LoginThrottle,)

    @describe({200: SignedInOutput}, body=CredentialsInput)
    def post(self, request: Request) -> Response:
        return _tokens(issue(log_in(**read_body(request, CredentialsInput))))


class RefreshView(PublicView):
    @describe({200: SignedInOutput}, body=RefreshInput)
    def post(self, request: Request) -> Response:
        return _tokens(rotate(read_body(request, RefreshInput)["refresh"]))


class LogoutView(PublicView):
    """The refresh token proves who leaves; the access token ends by itself within minutes."""

    @describe({204: None}, body=RefreshInput)
    def post(self, request: Request) -> Response:
        end_family(read_body(request, RefreshInput)["refresh"])
        return Response(status=204)


class PasswordView(ApiView):
    @describe({200: SignedInOutput}, body=PasswordInput)
    def post(self, request: Request) -> Response:
        fields, person = read_body(request, PasswordInput), person_of(request)
        user = User.objects.get(pk=person.user_id)
        with transaction.atomic():
            change_password(user, old=fields["old_password"], new=fields["new_password"])
            end_all_families(user.pk)
            for organization in list_organizations(user.pk):
                record(person, "user.change_password", place_of(organization), target=("user", user.pk))
            pair = issue(user)
        return _tokens(pair)


def _tokens(pair: TokenPair, status: int = 200) -> Response:
    shown = {"token_type": "Bearer", **TokensOutput(pair).data}
    return Response(shown, status=status, headers={"Cache-Control": "no-store"})
