"""Access and refresh tokens: issue, verify, rotate. A refresh token works once; an old one kills its family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models.functions import Now
from django.utils.crypto import constant_time_compare
from rest_framework_simplejwt.exceptions import TokenError
from rest_framework_simplejwt.tokens import AccessToken, RefreshToken, Token
from rest_framework_simplejwt.utils import datetime_from_epoch

from accounts.models import RefreshFamily, User
from scheduler_project.lib import logs
from scheduler_project.lib.errors import DomainError
from scheduler_project.lib.ids import uuid7

log = logs.get(__name__)

_FAMILY, _STAMP = "family", "stamp"
_STAMP_CHARS = 16


class BadToken(DomainError):
    """The token is not ours, expired, used up, or its account is closed; which of these is not told."""

    code = "unauthorized"

    def __init__(self) -> None:
        super().__init__("The token is invalid or has expired.")


@dataclass(frozen=True, slots=True)
class TokenPair:
    """What a log-in hands out; the access token is good for ``expires_in`` seconds."""

    access: str
    refresh: str
    expires_in: int


def issue(user: User) -> TokenPair:
    """The first pair of a new family; families of this user that have expired are cleared away."""
    user.refresh_families.filter(expires_at__lt=Now()).delete()
    refresh = _claim_for(RefreshToken(), user)
    family = RefreshFamily(user=user, current_jti=UUID(refresh["jti"]), expires_at=datetime_from_epoch(refresh["exp"]))
    family.save(force_insert=True)
    refresh[_FAMILY] = str(family.pk)
    return _pair(user, refresh)


def rotate(text: str) -> TokenPair:
    """Exchange a refresh token for the next pair. Of two who try with the same token one succeeds, then none.

    Raises:
        BadToken: it is no valid refresh token, or it was exchanged before: then its successors are dead too.
    """
    old = _decoded(RefreshToken, text)
    try:
        family = RefreshFamily.objects.select_related("user").get(pk=UUID(old[_FAMILY]), user_id=UUID(old["sub"]))
        old_jti = UUID(old["jti"])
    except (KeyError, ValueError, RefreshFamily.DoesNotExist):
        raise BadToken from None
    if not _is_current(old, family.user):
        raise BadToken
    refresh = _claim_for(RefreshToken(), family.user)
    refresh[_FAMILY] = old[_FAMILY]
    alive = RefreshFamily.objects.filter(pk=family.pk, revoked_at=None)
    expires_at = datetime_from_epoch(refresh["exp"])
    if not alive.filter(current_jti=old_jti).update(current_jti=UUID(refresh["jti"]), expires_at=expires_at):
        if alive.update(revoked_at=Now()):
            log.warning("refresh_token_reused", user_id=str(family.user_id), family_id=str(family.pk))
        raise BadToken
    return _pair(family.user, refresh)


def end_family(text: str) -> None:
    """Log out: no refresh token of this log-in works from now on. Tokens that are bad already are no error."""
    try:
        token = _decoded(RefreshToken, text)
        family_id = UUID(token[_FAMILY])
    except (BadToken, KeyError, ValueError):
        return
    RefreshFamily.objects.filter(pk=family_id, user_id=str(token["sub"]), revoked_at=None).update(revoked_at=Now())


def end_all_families(user_id: UUID) -> None:
    """No refresh token of this account works from now on."""
    RefreshFamily.objects.filter(user_id=user_id, revoked_at=None).update(revoked_at=Now())


def verify_access(text: str) -> User:
    """Whose access token this is; one query, so that a closed account or a new password ends it at once.

    Raises:
        BadToken: it proves nobody.
    """
    token = _decoded(AccessToken, text)
    try:
        user = User.objects.get(pk=UUID(token["sub"]))
    except (KeyError, ValueError, User.DoesNotExist):
        raise BadToken from None
    if not _is_current(token, user):
        raise BadToken
    return user


def _decoded(kind: type[Token], text: str) -> Any:
    try:
        return kind(text)  # type: ignore[arg-type] # the library means the encoded text, its annotation does not
    except TokenError:
        raise BadToken from None


def _claim_for(token: Any, user: User) -> Any:
    token["jti"] = str(uuid7())
    token["sub"] = str(user.pk)
    token["email"] = user.email
    token[_STAMP] = stamp_of(user)
    return token


def stamp_of(user: User) -> str:
    """Changes with the password, however that was changed."""
    return user.get_session_auth_hash()[:_STAMP_CHARS]


def _is_current(token: Any, user: User) -> bool:
    return user.is_active and constant_time_compare(str(token.get(_STAMP, "")), stamp_of(user))


def _pair(user: User, refresh: Any) -> TokenPair:
    access = _claim_for(AccessToken(), user)
    return TokenPair(str(access), str(refresh), int(access["exp"]) - int(access["iat"]))
