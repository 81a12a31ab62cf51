"""Charts as SVG, drawn on the server: presentation attributes and classes only, so the strict content policy holds.

A series is ``(css class, label, values)``; the class gives colour and texture (static/css/charts.css).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from scheduler_project.lib.web.durations import duration, number

Series = tuple[str, str, Sequence[float | None]]
#: Of the drawing, which is stretched to its room: what is written stands beside it, so that it is read at any size.
WIDTH, HEIGHT = 600, 150


class Scale(NamedTuple):
    """Of a chart: its highest value, the unit, and what is said instead of drawing nothing."""

    top: float
    unit: str
    nothing: str


def sparkline(values: Sequence[float], label: str, css: str = "c-accent") -> SafeString:
    """A line without axes, with its area."""
    if len(values) < 2:
        values = [0.0, 0.0]
    top = max(values) or 1.0
    step = 120 / (len(values) - 1)
    points = " ".join(f"{i * step:.1f},{26 - max(0.0, v) / top * 24:.1f}" for i, v in enumerate(values))
    return format_html(
        '<svg class="spark {}" viewBox="0 0 120 28" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<polygon class="area" points="0,28 {} 120,28"/><polyline class="line" points="{}"/></svg>',
        css, label, points, points,
    )  # fmt: skip


def line_chart(
    title: str, labels: Sequence[str], series: Sequence[Series], unit: str = "", nothing: str = ""
) -> SafeString:
    """Several lines over the same labels; a value of None is a gap.

    Args:
        nothing: stands in the chart if it has no value.
    """
    known = [v for _, _, values in series for v in values if v is not None]
    top = _round_up(max(known, default=0))
    paths = format_html_join(
        "", '<path class="line {}" d="{}"/>', ((css, _path(values, top)) for css, _, values in series)
    )
    return _figure(title, labels, series, paths, Scale(top, unit, "" if known else nothing))


def stacked_bars(
    title: str, labels: Sequence[str], series: Sequence[Series], unit: str = "", nothing: str = ""
) -> SafeString:
    """One bar for each label, its parts on top of each other.

    Args:
        nothing: stands in the chart if all is 0.
    """
    totals = [sum(values[i] or 0 for _, _, values in series) for i in range(len(labels))]
    top = _round_up(max(totals, default=0))
    step = WIDTH / max(len(labels), 1)
    bars = []
    for i, label in enumerate(labels):
        y = float(HEIGHT)
        for css, name, values in series:
            value = values[i] or 0
            height = value / top * HEIGHT
            if value:
                y -= height
                told = escape(f"{label}: {number(value)} {name}")
                bars.append(
                    f'<rect class="bar {css}" x="{i * step + step * 0.1:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" '
                    f'height="{height:.1f}"><title>{told}</title></rect>'
                )
    drawn = _safe(bars)
    return _figure(title, labels, series, drawn, Scale(top, unit, "" if any(totals) else nothing))


def gauge(value: float, limit: float | None, label: str) -> SafeString:
    """A bar that fills up; without a limit it stays thin and empty."""
    part = min(1.0, value / limit) if limit else 0.0
    css = "is-full" if limit and value >= limit else "is-open" if not limit else ""
    return format_html(
        '<svg class="gauge {}" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="track" width="100" height="6" rx="2"/><rect class="fill" width="{}" height="6" rx="2"/></svg>',
        css, label, f"{part * 100:.1f}",
    )  # fmt: skip


def distribution(parts: Sequence[tuple[str, str, int]], label: str) -> SafeString:
    """One bar in which each ``(css class, name, count)`` has its share."""
    total = sum(count for _, _, count in parts) or 1
    x, rects = 0.0, []
    for css, name, count in parts:
        width = count / total * 400
        if count:
            gap = 1 if x + width < 399.9 else 0  # none after the last
            rects.append((css, f"{x:.1f}", f"{max(width - gap, 1):.1f}", f"{name}: {number(count)}"))
        x += width
    drawn = format_html_join("", '<rect class="bar {}" x="{}" width="{}" height="14"><title>{}</title></rect>', rects)
    return format_html(
        '<svg class="distribution" viewBox="0 0 400 14" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="track" width="400" height="14"/>{}</svg>', label, drawn,
    )  # fmt: skip


def _figure(title: str, labels: Sequence[str], series: Sequence[Series], drawn: SafeString, scale: Scale) -> SafeString:
    keys = format_html_join("", '<li class="{}"><i></i>{}</li>', ((css, name) for css, name, _ in series))
    heads = format_html_join("", '<th scope="col">{}</th>', ((name,) for _, name, _ in series))
    rows = _safe(
        f"<tr><th scope=row>{escape(label)}</th>{''.join(f'<td>{number(v)}</td>' for v in line)}</tr>"
        for label, *line in zip(labels, *(values for _, _, values in series), strict=True)
    )
    told = f"{title}{f', in {scale.unit}' if scale.unit else ''}{f': {scale.nothing}' if scale.nothing else ''}"
    return format_html(
        '<figure class="chart"><figcaption><span>{}</span><ul class="legend">{}</ul></figcaption>{}'
        '<details class="as-table"><summary>As table</summary>'
        '<div class="scroller" tabindex="0" role="region" aria-label="{}">'
        '<table><thead><tr><th scope="col">Time</th>{}</tr></thead><tbody>{}</tbody></table></div></details></figure>',
        title, keys, _plot(told, labels, drawn, scale), title, heads, rows,
    )  # fmt: skip


def _plot(told: str, labels: Sequence[str], drawn: SafeString, scale: Scale) -> SafeString:
    heights = [_with_unit(scale.top * part, scale.unit) if part else "0" for part in (1.0, 0.5, 0.0)]
    places = sorted({0, len(labels) // 3, 2 * len(labels) // 3, len(labels) - 1}) if labels else []
    lines = ((y, y) for y in ("0.5", f"{HEIGHT / 2:.1f}", f"{HEIGHT - 0.5:.1f}"))
    return format_html(
        '<div class="plot{}"><div class="y" aria-hidden="true">{}</div>'
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}"><title>{}</title>{}{}</svg>'
        '{}<div class="x" aria-hidden="true">{}</div></div>',
        " is-empty" if scale.nothing else "",
        format_html_join("", "<span>{}</span>", ((text,) for text in heights)),
        WIDTH, HEIGHT, told, told,
        format_html_join("", f'<line class="grid" x1="0" x2="{WIDTH}" y1="{{}}" y2="{{}}"/>', lines),
        drawn,
        format_html('<p class="nothing" aria-hidden="true">{}</p>', scale.nothing) if scale.nothing else "",
        format_html_join("", "<span>{}</span>", ((labels[i],) for i in places)),
    )  # fmt: skip


def _safe(parts: Iterable[str]) -> SafeString:
    """Markup of numbers, classes of ours and what was escaped: a day has a thousand parts, too many for format_html."""
    return mark_safe("".join(parts))  # noqa: S308 - see above


def _with_unit(value: float, unit: str) -> str:
    return duration(value / 1000) if unit == "ms" else f"{number(value)} {unit}".strip()


def _path(values: Sequence[float | None], top: float) -> str:
    """A line with gaps; a value between two gaps is a short stroke, which can be seen."""
    step = WIDTH / max(len(values), 1)
    parts = []
    for i, value in enumerate(values):
        if value is None:
            continue
        x, y = (i + 0.5) * step, HEIGHT - value / top * HEIGHT
        is_first = i == 0 or values[i - 1] is None
        is_last = i + 1 == len(values) or values[i + 1] is None
        if is_first and is_last:
            parts.append(f"M{x - step * 0.4:.1f} {y:.1f}h{step * 0.8:.1f}")
        else:
            parts.append(f"{'M' if is_first else 'L'}{x:.1f} {y:.1f}")
    return "".join(parts)


def _round_up(value: float) -> float:
    scale = 1.0
    while scale * 10 <= value:
        scale *= 10
    while scale > value > 0 and scale > 0.01:
        scale /= 10
    return next(
        (scale * m for m in (1, 2, 4, 5, 6, 8, 10) if scale * m >= value and value > 0), 1.0 if value <= 0 else value
    )
