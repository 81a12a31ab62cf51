"""Circuit breakers: what is held back and since when, and closing one by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from jobs.lifecycle.circuits import LEAST, REMEMBERED, reset
from jobs.models import CircuitBreaker
from jobs.selectors.breaker_board import MOST_WAITING, State, holding_back, probe_at, trusted
from jobs.selectors.breakers import get_breaker
from orgs.audit import deed
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view, of_project, path_in
from scheduler_project.lib.web.confirm import Question, unless_confirmed
from scheduler_project.lib.web.pages import back_to, respond
from scheduler_project.lib.web.paging import page_by_id
from scheduler_project.lib.web.text import harmless
from scheduler_project.lib.web.toasts import say

MOST_HOLDING = 200


@dataclass(frozen=True, slots=True)
class Row:
    """A breaker in words; ``glyph`` is one of those that states have."""

    breaker: CircuitBreaker
    glyph: str
    word: str
    since: datetime
    probe_at: datetime | None
    calls: SafeString

    @classmethod
    def of(cls, one: CircuitBreaker) -> Row:
        """As the table has it."""
        glyph, word = _GLYPHS[one.state]
        if one.state == State.CLOSED and one.allowance is not None:
            glyph, word = "retrying", "Closing"
        return cls(one, glyph, word, one.opened_at or one.updated_at, probe_at(one), draw_calls(one.recent))

    @property
    def is_bad(self) -> bool:
        """Does it let nothing through?"""
        return self.breaker.state == State.OPEN


_GLYPHS: dict[str, tuple[str, str]] = {State.CLOSED: ("active", "Closed"), State.OPEN: ("failed", "Open"),
           State.HALF_OPEN: ("draining", "Half open")}  # fmt: skip


@require_safe
@member_view()
def breakers(request: MemberRequest) -> HttpResponse:
    wanted = request.GET.get("q", "").replace("\x00", "").strip()[:300]
    holding, others = holding_back(request.project.pk), trusted(request.project.pk)
    if wanted:
        holding, others = holding.filter(name__icontains=wanted), others.filter(name__icontains=wanted)
    page = page_by_id(request, others)
    first = [] if page.first_query is not None else list(holding[:MOST_HOLDING])
    context = {
        "section": "circuit_breakers",
        "page": page,
        "rows": [Row.of(one) for one in (*first, *page.rows)],
        "n_open": sum(one.state == State.OPEN for one in first),
        "n_holding": len(first),
        "wanted": wanted,
        "most_waiting": MOST_WAITING,
        "remembered": REMEMBERED,
        "least": LEAST,
    }
    return respond(request, "jobs/breakers.html", "jobs/_breakers.html", context)


@require_POST
@member_view(needs=Role.ADMIN)
def reset_breaker(request: MemberRequest, breaker_id: UUID) -> HttpResponse:
    """Close it by hand. Its jobs run at once, all together, so it asks first."""
    found = _get(request, breaker_id)
    back, name = path_in(request, "circuit_breakers"), found.name
    asked = Question(
        action="circuit_breaker.reset",
        target=str(breaker_id),
        title=f"Close the circuit {harmless(name, 80)}?",
        text="What is known of its last calls is forgotten, and the jobs that wait for it run at once. If its target "
        "is still down, they fail and use up an attempt each before it opens again.",
        button="Close the circuit",
        back=back,
    )
    if (page := unless_confirmed(request, asked)) is not None:
        return page
    with transaction.atomic():
        found = get_breaker(request.actor, breaker_id, needs=Role.ADMIN, is_locked=True)
        with deed(request.actor, "circuit_breaker.reset", found):
            reset(found)
    say(request, f"The circuit {harmless(name, 80)} is closed.")
    return back_to(back)


def draw_calls(recent: str) -> SafeString:
    """The last calls, the newest to the right: full is good, broken is bad."""
    if not recent:
        return format_html('<span class="quiet">{}</span>', "none noted")
    x0 = 7 * (REMEMBERED - len(recent))
    bars = format_html_join("", '<path class="{}" d="{}"/>', (
        ("t-failed", f"M{x} 1h5v7h-5zM{x} 12h5v7h-5z") if call == "1" else ("t-completed", f"M{x} 1h5v18h-5z")
        for x, call in zip(range(x0, 7 * REMEMBERED, 7), recent, strict=False)
    ))  # fmt: skip
    label = f"Of the last {len(recent)} calls {recent.count('1')} went wrong"
    return format_html(
        '<svg class="ticks calls" viewBox="0 0 {} 20" role="img" aria-label="{}"><title>{}</title>{}</svg>',
        7 * REMEMBERED, label, label, bars,
    )  # fmt: skip


def _get(request: MemberRequest, breaker_id: UUID) -> CircuitBreaker:
    return of_project(request, get_breaker(request.actor, breaker_id, needs=Role.ADMIN), "circuit breaker")
