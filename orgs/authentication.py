"""REST framework: who sends a project's API key, and which actor a request speaks for."""

from __future__ import annotations

from datetime import timedelta
from typing import cast
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.models import User
from orgs import sql
from orgs.access import Actor, Machine, Person
from orgs.keys import DEMO, hash_key, is_well_formed
from orgs.models import ApiKey
from scheduler_project.lib.errors import Forbidden
from scheduler_project.lib.sql import run

_SCHEME = "api-key"
#: ``last_used_at`` is written at most this often, so that using a key does not mean writing its row.
_USE_NOTED_EVERY = timedelta(minutes=1)


class KeyHolder:
    """What stands in ``request.user`` for a machine."""

    is_authenticated = True
    is_active = True
    is_anonymous = False
    pk: UUID | None = None

    def __init__(self, machine: Machine) -> None:
        self.machine = machine


class ApiKeyAuthentication(BaseAuthentication):
    """A machine, by ``X-API-Key`` or ``Authorization: Api-Key``. Revoked, expired and unknown keys look alike."""

    def authenticate(self, request: Request) -> tuple[KeyHolder, None] | None:
        """The key's holder; None if the request carries no key; AuthenticationFailed if it carries a bad one."""
        key = _key_of(request)
        if key is None:
            return None
        machine = _find(key)
        if machine is None:
            raise AuthenticationFailed("The API key is invalid, expired or revoked.")
        return KeyHolder(machine), None

    def authenticate_header(self, request: Request) -> str:
        """For WWW-Authenticate."""
        return 'Api-Key realm="api"'


def actor_of(request: Request) -> Actor:
    """Whom an authenticated request speaks for."""
    who: object = request.user
    return who.machine if isinstance(who, KeyHolder) else Person(cast("User", who).pk)


def person_of(request: Request) -> Person:
    """The user behind a request; Forbidden for machines, where the specification wants a person."""
    actor = actor_of(request)
    if isinstance(actor, Machine):
        raise Forbidden("An API key can not do this; sign in.")
    return actor


def _key_of(request: Request) -> str | None:
    key = request.headers.get("X-API-Key")
    if key is not None:
        return key.strip()
    scheme, _, rest = request.headers.get("Authorization", "").partition(" ")
    return rest.strip() if scheme.lower() == _SCHEME else None


def _find(key: str) -> Machine | None:
    """Whom the key speaks for, if it may be used now. Nothing is cached, so revoking works at once everywhere."""
    if not is_well_formed(key) or (settings.IS_PRODUCTION and key.startswith(DEMO)):
        return None
    rows = run(sql.FIND_KEY, {"key_hash": hash_key(key), "noted_s": _USE_NOTED_EVERY.total_seconds()})
    if not rows:
        return None
    [(key_id, project_id, scope, is_use_noted)] = rows
    if not is_use_noted:
        ApiKey.objects.filter(pk=key_id).update(last_used_at=Now())
    return Machine(key_id, project_id, scope)
