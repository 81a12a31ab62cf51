"""The paths of many things of one kind on a page: the route is looked up once, not once a row."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from django.urls import get_script_prefix, reverse

_ANY = UUID("00000000-0000-0000-0000-00000000a11f")


def link(name: str, organization_slug: str, project_slug: str, id_: UUID) -> str:
    """The path of a page of a project that is about one thing."""
    return _route(name, organization_slug, project_slug, get_script_prefix()).replace(str(_ANY), str(id_))


@lru_cache(maxsize=2_048)
def _route(name: str, organization_slug: str, project_slug: str, prefix: str) -> str:
    """With a placeholder; the prefix is in the key because the path begins with it."""
    return reverse(name, args=[organization_slug, project_slug, _ANY])
