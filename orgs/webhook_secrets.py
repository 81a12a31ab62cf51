"""Signing secrets of a project: ``whsec_`` and the Base64 of 32 random bytes, as Standard Webhooks has them."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Least, Now

from orgs.models import Project, WebhookSecret
from scheduler_project.lib import secretbox
from scheduler_project.lib.errors import Conflict, NotFound

MARK = "whsec_"
PREFIX_CHARS = len(MARK) + 4
_RANDOM_BYTES = 32
#: Each call carries a signature for each usable secret; more than two are needed only while rotations overlap.
MAX_USABLE = 5


@dataclass(frozen=True, slots=True)
class ShownSecret:
    """A new secret with its text, which is shown now and never again."""

    row: WebhookSecret
    secret: str


def list_secrets(project_id: UUID) -> QuerySet[WebhookSecret]:
    """The secrets of a project, revoked and expired ones too, the newest first; without what they are."""
    return WebhookSecret.objects.filter(project_id=project_id).defer("sealed").order_by("-id")


def get_secret(project_id: UUID, secret_id: UUID) -> WebhookSecret:
    """One secret of a project, without what it is. Raises NotFound."""
    row = list_secrets(project_id).filter(pk=secret_id).first()
    if row is None:
        raise NotFound("There is no such webhook secret.")
    return row


def signing_keys(project_id: UUID | str) -> tuple[bytes, ...]:
    """What calls of a project are signed with now, the newest first; empty: they are not signed.

    Raises:
        Sealed: a secret can not be opened with the keys of this installation.
    """
    sealed = _usable(project_id).order_by("-id").values_list("sealed", flat=True)
    return tuple(secretbox.decrypt(text) for text in sealed)


def are_calls_signed(project_id: UUID | str) -> bool:
    """Has the project a usable secret?"""
    return _usable(project_id).exists()


def create_secret(project: Project, *, by: UUID | None) -> ShownSecret:
    """A new secret; from now on the project's calls are signed with it too.

    Raises:
        Conflict: there are as many usable ones as there may be.
    """
    with transaction.atomic():
        # Of two who create at once the second waits here and counts the first one's.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if _usable(project.pk).count() >= MAX_USABLE:
            raise Conflict(f"The project has {MAX_USABLE} usable webhook secrets; revoke one first.")
        key = secrets.token_bytes(_RANDOM_BYTES)
        text = MARK + base64.b64encode(key).decode("ascii")
        row = WebhookSecret.objects.create(
            project=project, prefix=text[:PREFIX_CHARS], sealed=secretbox.encrypt(key), created_by_id=by
        )
        return ShownSecret(row, text)


def rotate_secret(secret: WebhookSecret, *, overlap_secs: int, by: UUID | None) -> ShownSecret:
    """A new secret; the old one signs beside it until the overlap is over.

    Raises:
        Conflict: it is revoked or has expired, or there are too many.
    """
    with transaction.atomic():
        ends = Now() + timedelta(seconds=overlap_secs)
        # An overlap that was granted is never made longer.
        if not _usable(secret.project_id).filter(pk=secret.pk).update(expires_at=Least("expires_at", ends)):
            raise Conflict("The webhook secret is revoked or has expired.")
        return create_secret(secret.project, by=by)


def revoke_secret(secret_id: UUID) -> None:
    """Sign nothing with it any more; workers follow within seconds.

    Raises:
        Conflict: it is revoked already.
    """
    if not WebhookSecret.objects.filter(pk=secret_id, revoked_at=None).update(revoked_at=Now()):
        raise Conflict("The webhook secret is revoked already.")


def _usable(project_id: UUID | str) -> QuerySet[WebhookSecret]:
    alive = Q(expires_at=None) | Q(expires_at__gt=Now())
    return WebhookSecret.objects.filter(alive, project_id=project_id, revoked_at=None)
