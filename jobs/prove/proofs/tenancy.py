"""Every path of the product, tried by every kind of stranger: none sees or changes anything of another organization."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from django.db.models import QuerySet, Value
from django.urls import URLPattern, URLResolver, get_resolver

from jobs.prove.stage.breaking import replace_everywhere
from jobs.prove.stage.proof import Proof, Size, all_of, none_of
from jobs.prove.stage.stage import Stage
from jobs.prove.stage.tenants import MARK, Tenant, Visitor, make_strangers, make_tenant
from orgs import access
from scheduler_project.lib.figures import Figure

_PLACE = re.compile(r"<(?:\w+:)?(\w+)>")
_SHOWN = 20
#: Tables of a project; and one number for all that is in them of it.
TABLES = """
select distinct table_name
  from information_schema.columns join information_schema.tables using (table_schema, table_name)
 where column_name = 'project_id' and table_schema = 'public' and table_type = 'BASE TABLE' order by 1
"""
CONTENT = "select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) from {} as t where project_id = %s"


@dataclass(slots=True)
class _Tally:
    requests: int = 0
    let_in: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    broke: list[str] = field(default_factory=list)


def run(stage: Stage) -> list[Figure]:
    """Two organizations; the paths come from the product itself, so that none can be forgotten."""
    logging.disable(logging.CRITICAL)  # thousands of refusals, each of which is due
    tenant = make_tenant()
    paths = sorted(set(_paths(get_resolver().url_patterns)))
    owner, found = _Tally(), _Tally()
    for path in paths:
        _send(tenant.owner, "GET", path, tenant, owner)
    strangers = make_strangers(tenant)
    before = _contents(stage, tenant)
    for stranger in strangers[: stage["strangers"]]:
        stage.say(f"{len(paths)} paths: {stranger.name}")
        for path in paths:
            for method in ("GET", "POST", "PATCH", "PUT", "DELETE"):
                _send(stranger, method, path, tenant, found)
    for line in [*found.let_in, *found.seen, *found.broke][:_SHOWN]:
        stage.say(line)
    changed = [table for table, content in _contents(stage, tenant).items() if before[table] != content]
    if changed:
        stage.say(f"changed: {', '.join(changed)}")
    return [
        all_of("paths", len(paths), 60),
        Figure("requests", found.requests),
        none_of("let_in", len(found.let_in), "requests"),
        none_of("saw_something", len(found.seen), "answers"),
        none_of("changed_tables", len(changed)),
        none_of("broke", len(found.broke), "requests, by a fault of ours"),
        # The same paths show it all to the owner: the marks are there to be seen.
        all_of("owner_sees", len(owner.seen), 15, "answers"),
    ]


def _paths(patterns: Any, prefix: str = "") -> Iterator[str]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if route.startswith("admin/"):
            continue  # Django's own, for the staff of the installation alone
        if isinstance(pattern, URLResolver):
            yield from _paths(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield route


def _send(who: Visitor, method: str, path: str, tenant: Tenant, tally: _Tally) -> None:
    """The requests of one method; what a stranger must not get is noted."""
    url = "/" + _PLACE.sub(lambda found: tenant.ids.get(found[1], tenant.ids["queue_id"]), path)
    bodies = tenant.bodies if method == "POST" else tenant.bodies[:2]
    asked: list[tuple[str, Mapping[str, Any]]] = [(url, body) for body in bodies]
    if method == "GET":
        asked = [(url + query, {}) for query in (tenant.queries if "<" not in path else [""])]
    for where, body in asked:
        content = b"" if method == "GET" else json.dumps(body).encode()
        answer = who.client.generic(method, where, content, content_type="application/json", headers=dict(who.headers))
        tally.requests += 1
        line = f"{who.name}: {method} {path}: {answer.status_code}"
        if answer.status_code >= 500:
            tally.broke.append(line)
        elif "<" in path and answer.status_code < 300:
            tally.let_in.append(line)
        # A stream has no end, and is the asker's own: by its first answer nothing is told.
        if not answer.streaming and MARK.encode() in answer.content:
            tally.seen.append(line)


def _contents(stage: Stage, tenant: Tenant) -> dict[str, str]:
    """For each table a number that changes with the tenant's rows in it."""
    project_id = tenant.project.pk
    return {name: stage.value(CONTENT.format(name), project_id) for (name,) in stage.rows(TABLES)}


def _without_members() -> None:
    def all_rows(queryset: QuerySet[Any], _actor: object, _project: str) -> QuerySet[Any]:
        return cast("QuerySet[Any]", queryset.annotate(actor_role=Value("owner")))

    replace_everywhere(access.visible, all_rows)


PROOF = Proof(
    name="tenancy",
    run=run,
    sizes={"strangers": Size(4, 4)},
    breaks={"members": _without_members},
    env={f"APP_RATE_{kind}_PER_MIN": "0" for kind in ("READ", "SUBMIT", "LOGIN")},
)
