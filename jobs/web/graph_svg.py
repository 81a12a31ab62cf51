"""A layered graph of jobs as SVG: presentation attributes and classes only, so the strict content policy holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.web.graph_layers import Node
from scheduler_project.lib.web.durations import number
from scheduler_project.lib.web.tags import STATES, icon
from scheduler_project.lib.web.text import harmless

WIDTH, HEIGHT, APART, BETWEEN, EDGE = 190, 46, 14, 56, 12
#: More nodes than this, or edges, are not drawn: nobody could read them.
MOST_NODES, MOST_LINES = 400, 2_000
_SHORT = 24
#: The shares of a folded node's bar, from the left.
_SHARES = (
    ("c-completed", ("completed",)),
    ("c-running", ("claimed", "running")),
    ("c-failed", ("failed", "dead_letter")),
    ("c-skipped", ("cancelled",)),
    ("c-left", ("queued", "scheduled")),
)


def can_be_drawn(columns: Sequence[Sequence[Node]]) -> bool:
    """Is it small enough to be read?"""
    nodes = [node for column in columns for node in column]
    return len(nodes) <= MOST_NODES and sum(len(node.parents) for node in nodes) <= MOST_LINES


def draw(columns: Sequence[Sequence[Node]], focus: str, link: Callable[[Node], str]) -> SafeString:
    """The columns from left to right, each in the middle of the height; ``focus`` is the job that stands out."""
    tallest = max(len(column) for column in columns)
    height = tallest * (HEIGHT + APART) - APART + 2 * EDGE
    width = len(columns) * (WIDTH + BETWEEN) - BETWEEN + 2 * EDGE
    places: dict[str, tuple[float, float]] = {}
    for number_, column in enumerate(columns):
        top = (height - len(column) * (HEIGHT + APART) + APART) / 2
        for node in column:
            places[node.key] = EDGE + number_ * (WIDTH + BETWEEN), top + node.row * (HEIGHT + APART)
    nodes = [node for column in columns for node in column]
    lines = format_html_join("", '<path d="{}"/>', (
        (_curve(places[parent], places[node.key]),) for node in nodes for parent in sorted(node.parents)
    ))  # fmt: skip
    drawn = format_html_join("", "{}", ((_node(node, *places[node.key], focus, link(node)),) for node in nodes))
    count = sum(len(node.members) for node in nodes)
    return format_html(
        '<svg class="graph" width="{}" height="{}" viewBox="0 0 {} {}" role="group" aria-label="{}">'
        '<g class="edges">{}</g>{}</svg>',
        width, height, width, height, f"Graph of {number(count)} jobs in {len(columns)} steps", lines, drawn,
    )  # fmt: skip


def _node(node: Node, x: float, y: float, focus: str, url: str) -> SafeString:
    is_focus = any(member.id == focus for member in node.members)
    name, counts = harmless(node.kind, 200), node.counts
    short = name if len(name) <= _SHORT else f"{name[: _SHORT - 1]}…"
    if node.is_folded:
        state = worst_of(counts)
        said = ", ".join(f"{number(n)} {STATES[status].lower()}" for status, n in counts.most_common())
        below, more = f"{number(len(node.members))} jobs: {said}", _bar(counts, x, y)
        line = f"\N{MULTIPLICATION SIGN} {number(len(node.members))}"
    else:
        state = node.members[0].status
        below, more = STATES[state], SafeString("")
        line = STATES[state]
    at = [f"{place:.1f}" for place in (x, y, x + 10, y + 9, x + 33, y + 20, y + 36)]
    css = f"node s-{state}{' is-folded' if node.is_folded else ''}{' is-focus' if is_focus else ''}"
    return format_html(
        '<a href="{0}" class="{1}" aria-label="{2}: {3}"><title>{2}: {3}</title>'
        '<rect x="{4}" y="{5}" width="{11}" height="{12}" rx="5"/>'
        '<svg x="{6}" y="{7}" width="16" height="16">{13}</svg>'
        '<text class="title" x="{8}" y="{9}">{14}</text><text class="line" x="{8}" y="{10}">{15}</text>{16}</a>',
        url, css, name, below, *at, WIDTH, HEIGHT, icon(f"s-{state}"), short, line, more,
    )  # fmt: skip


def worst_of(counts: Counter[str]) -> str:
    """The status that says how it stands with many."""
    for status in ("dead_letter", "failed", "running", "claimed", "queued", "scheduled", "cancelled"):
        if counts[status]:
            return status
    return "completed"


def _bar(counts: Counter[str], x: float, y: float) -> SafeString:
    left, room, total = x + 80.0, WIDTH - 92.0, counts.total()
    rects = []
    for css, statuses in _SHARES:
        width = sum(counts[status] for status in statuses) / total * room
        if width:
            rects.append((css, f"{left:.1f}", f"{y + 29:.1f}", f"{width:.1f}"))
        left += width
    return format_html_join("", '<rect class="bar {}" x="{}" y="{}" width="{}" height="7"/>', rects)


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    x1, y1, x2, y2 = start[0] + WIDTH, start[1] + HEIGHT / 2, end[0], end[1] + HEIGHT / 2
    bend = max(BETWEEN / 2, (x2 - x1) / 2)
    return f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
