"""Organizations, projects and their keys: create, change, revoke. Whether the caller may is settled before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Least, Now
from django.utils.text import slugify

from orgs.keys import PREFIX_CHARS, hash_key, make_key
from orgs.models import MAX_RETENTION_DAYS, ApiKey, Organization, OrganizationMember, Project, Role
from scheduler_project.lib.constraints import refusals, taken
from scheduler_project.lib.errors import Conflict, ValidationFailed
from scheduler_project.lib.text import clean_name

MAX_NAME_CHARS = 200
MAX_SLUG_CHARS = 80
MAX_KEY_NAME_CHARS = 100
#: How long two secrets of a rotated key can be good side by side.
MAX_OVERLAP_SECS = 30 * 86_400
_SLUG_TRIES = 20


@dataclass(frozen=True, slots=True)
class ShownKey:
    """A new key with its secret, which is shown now and never again."""

    row: ApiKey
    key: str


def create_organization(*, name: str, slug: str = "", by: UUID) -> Organization:
    """A new organization; its creator becomes its owner.

    Args:
        slug: made from the name, with a number if need be, unless given.

    Raises:
        ValidationFailed: a bad name or slug.
        Conflict: the given slug is taken.
    """
    title = clean_name(name, "name", MAX_NAME_CHARS)
    for candidate in _slugs(title, slug):
        try:
            with refusals({"organizations_slug_key": taken("slug", f"{candidate} is taken")}):
                organization = Organization.objects.create(name=title, slug=candidate)
                OrganizationMember.objects.create(organization=organization, user_id=by, role=Role.OWNER)
                return organization
        except Conflict:
            if slug:
                raise
    raise _no_slug_left()


def create_project(organization: Organization, *, name: str, slug: str = "", by: UUID) -> tuple[Project, ShownKey]:
    """A new project with its first API key.

    Raises:
        ValidationFailed: a bad name or slug.
        Conflict: the given slug is taken in this organization.
    """
    title = clean_name(name, "name", MAX_NAME_CHARS)
    for candidate in _slugs(title, slug):
        try:
            with refusals({"projects_slug_in_organization": taken("slug", f"{candidate} is taken")}):
                project = Project.objects.create(
                    organization=organization, name=title, slug=candidate, created_by_id=by
                )
                shown = create_api_key(project, name="default", by=by)
                project.api_key_hash = shown.row.key_hash
                project.save(update_fields=["api_key_hash"])
                return project, shown
        except Conflict:
            if slug:
                raise
    raise _no_slug_left()


def update_project(project: Project, *, name: str, retention_days: int | None) -> Project:
    """Change what a project is called and how long it keeps ended jobs. The caller holds its row.

    Args:
        retention_days: None is as the installation is set.

    Raises:
        ValidationFailed: naming the field and what is allowed.
        Conflict: somebody deleted it meanwhile.
    """
    title = clean_name(name, "name", MAX_NAME_CHARS)
    if retention_days is not None and not 1 <= retention_days <= MAX_RETENTION_DAYS:
        raise ValidationFailed.of("retention_days", f"must be from 1 to {MAX_RETENTION_DAYS}, or empty")
    alive = Project.objects.filter(pk=project.pk, deleted_at=None)
    if not alive.update(name=title, retention_days=retention_days, updated_at=Now()):
        raise Conflict("The project is deleted already.")
    project.refresh_from_db()
    return project


def delete_project(project: Project) -> None:
    """Hide a project and refuse its keys from now on; its rows stay. Its queues are for ``jobs.services`` to close.

    Raises:
        Conflict: somebody deleted it meanwhile.
    """
    if not Project.objects.filter(pk=project.pk, deleted_at=None).update(deleted_at=Now(), updated_at=Now()):
        raise Conflict("The project is deleted already.")


def create_api_key(
    project: Project,
    *,
    name: str,
    scope: str = ApiKey.Scope.MANAGE,
    expires_at: datetime | None = None,
    by: UUID | None,
) -> ShownKey:
    """A new key of a project; only its hash is stored."""
    if scope not in ApiKey.Scope.values:
        raise ValidationFailed.of("scope", f"must be one of {', '.join(ApiKey.Scope.values)}")
    key = make_key()
    row = ApiKey.objects.create(
        project=project,
        name=clean_name(name, "name", MAX_KEY_NAME_CHARS),
        prefix=key[:PREFIX_CHARS],
        key_hash=hash_key(key),
        scope=scope,
        expires_at=expires_at,
        created_by_id=by,
    )
    return ShownKey(row, key)


def rotate_api_key(key: ApiKey, *, overlap_secs: int, by: UUID | None) -> ShownKey:
    """A new key like this one; this one ends after the overlap, or when it would have ended anyway.

    Raises:
        Conflict: it is revoked or has expired.
    """
    with transaction.atomic():
        usable = ApiKey.objects.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), pk=key.pk, revoked_at=None)
        ends = Now() + timedelta(seconds=overlap_secs)
        # Of two who rotate at once the second waits here; an overlap that was granted is never made longer.
        if not usable.update(expires_at=Least("expires_at", ends)):
            raise Conflict("The key is revoked or has expired.")
        return create_api_key(key.project, name=key.name, scope=key.scope, expires_at=key.expires_at, by=by)


def revoke_api_key(key_id: UUID) -> None:
    """Refuse a key from now on.

    Raises:
        Conflict: it is revoked already.
    """
    if not ApiKey.objects.filter(pk=key_id, revoked_at=None).update(revoked_at=Now()):
        raise Conflict("The key is revoked already.")


def _slugs(title: str, given: str) -> list[str]:
    """The slugs to try: the given one, or what the name makes and the same with a number."""
    if given:
        if given != slugify(given) or len(given) > MAX_SLUG_CHARS:
            allowed = f"must be 1 to {MAX_SLUG_CHARS} lower-case letters, digits, - and _"
            raise ValidationFailed.of("slug", allowed)
        return [given]
    base = slugify(title)[: MAX_SLUG_CHARS - 4].strip("-_") or "unnamed"
    return [base, *(f"{base}-{number}" for number in range(2, _SLUG_TRIES))]


def _no_slug_left() -> Conflict:
    return Conflict("Many have this name already; choose another name or give a slug.")
