"""Proofs: what the engine promises, and what came of it when it was last checked on this installation."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from jobs.models import ProofResult
from jobs.promises import PROMISES
from jobs.selectors.proofs import last_results
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view
from scheduler_project.lib.web.pages import respond


class Row(NamedTuple):
    """A promise, and its last result if there is one."""

    name: str
    promise: str
    last: ProofResult | None
    figures: list[dict[str, Any]]


@require_safe
@member_view(needs=Role.VIEWER)
def proofs(request: MemberRequest) -> HttpResponse:
    found = last_results(PROMISES)
    rows = [Row(name, promise, found.get(name), _figures(found.get(name))) for name, promise in PROMISES.items()]
    verdicts = [result.verdict for result in found.values()]
    context = {
        "section": "proofs",
        "rows": rows,
        "n_met": verdicts.count("met"),
        "n_missed": verdicts.count("missed"),
        "n_never": len(rows) - len(found),
        "last": max((result.ended_at for result in found.values()), default=None),
    }
    return respond(request, "jobs/proofs.html", "jobs/_proofs.html", context)


def _figures(result: ProofResult | None) -> list[dict[str, Any]]:
    """Those of a result, under names for people."""
    return [{**figure, "name": figure["name"].replace("_", " ")} for figure in (result.figures if result else [])]
