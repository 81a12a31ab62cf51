"""Lengths of time and numbers as people read them."""

from __future__ import annotations

import re


def duration(seconds: float | None) -> str:
    """0.5 ms, 850 ms, 12.4 s, 3 m 12 s, 2 h 05 m, 4 d 3 h; never negative."""
    if seconds is None:
        return "\u2013"
    s = max(0.0, float(seconds))
    if s < 0.01:
        return f"{s * 1000:.1f} ms".replace(".0", "")
    if s < 1:
        return f"{s * 1000:.0f} ms"
    if s < 60:
        return f"{s:.1f} s" if s < 20 else f"{s:.0f} s"
    whole = round(s)
    if whole < 3_600:
        return f"{whole // 60} m {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3_600} h {whole % 3_600 // 60:02d} m"
    return f"{whole // 86_400} d {whole % 86_400 // 3_600} h"


def exact(seconds: float) -> str:
    """A duration that somebody chose, without zeros that say nothing: 10 s, 1 m, 1 h."""
    return re.sub(r"\.0(?= s)| 00? [smh]$", "", duration(seconds))


def number(value: float | None) -> str:
    """12,431; a thin space would not be found by a search."""
    if value is None:
        return "\u2013"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
