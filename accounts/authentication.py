"""REST framework: who sends ``Authorization: Bearer`` and an access token."""

from __future__ import annotations

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.models import User
from accounts.tokens import BadToken, verify_access

_SCHEME = "bearer"


class BearerAuthentication(BaseAuthentication):
    """A person, by an access token. Refresh tokens, unsigned tokens and closed accounts are refused."""

    def authenticate(self, request: Request) -> tuple[User, None] | None:
        """The user; None if the request carries no bearer token; AuthenticationFailed if it carries a bad one."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != _SCHEME:
            return None
        try:
            return verify_access(token.strip()), None
        except BadToken as error:
            raise AuthenticationFailed(error.message) from None

    def authenticate_header(self, request: Request) -> str:
        """For WWW-Authenticate."""
        return 'Bearer realm="api"'
