"""Tickets for live events: a browser's WebSocket sends no header, and a key has no place in an address."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db.models import Q
from django.db.models.functions import Now

from accounts.models import User
from accounts.tokens import stamp_of
from orgs.access import Actor, Machine, Person
from orgs.models import ApiKey, LiveTicket

GOOD_FOR_S = 30
MAX_CHARS = 100


def issue_ticket(actor: Actor) -> str:
    """A ticket that lets its holder listen as ``actor``, once, within 30 s; expired ones are cleared away.

    Raises:
        Forbidden: a key that only runs jobs.
    """
    text = secrets.token_urlsafe(32)
    LiveTicket.objects.filter(expires_at__lt=Now()).delete()
    ticket = LiveTicket(ticket_hash=_hash(text), stamp="", expires_at=Now() + timedelta(seconds=GOOD_FOR_S))
    if isinstance(actor, Machine):
        _ = actor.role  # raises for a key that sees nothing
        ticket.api_key_id = actor.key_id
    else:
        ticket.user_id = actor.user_id
        ticket.stamp = stamp_of(User.objects.get(pk=actor.user_id))
    ticket.save(force_insert=True)
    return text


def redeem_ticket(text: str) -> LiveTicket | None:
    """Use a ticket up; None if it is unknown, used or expired. Of two who try at once one succeeds."""
    ticket = LiveTicket.objects.filter(ticket_hash=_hash(text[:MAX_CHARS]), expires_at__gt=Now()).first()
    if ticket is None or not LiveTicket.objects.filter(pk=ticket.pk).delete()[0]:
        return None
    ticket.pk = _hash(text[:MAX_CHARS])
    return ticket


def holder_of(ticket: LiveTicket) -> Actor | None:
    """Whom a redeemed ticket speaks for now; None once the account or key is closed or the password is another."""
    if ticket.api_key_id is not None:
        usable = ApiKey.objects.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), pk=ticket.api_key_id)
        key = usable.filter(revoked_at=None, project__deleted_at=None).first()
        return None if key is None else Machine(key.pk, key.project_id, key.scope)
    user = User.objects.filter(pk__in=[ticket.user_id], is_active=True).first()
    return Person(user.pk) if user is not None and stamp_of(user) == ticket.stamp else None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
