"""Figures that a measure or a proof answers with, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure; with a ``target`` it says whether that was met (at least, or at most where ``is_most``)."""

    name: str
    value: float
    unit: str = ""
    target: float | None = None
    is_most: bool = False

    @property
    def is_met(self) -> bool | None:
        """None without a target."""
        if self.target is None:
            return None
        return self.value <= self.target if self.is_most else self.value >= self.target


def lines_of(figures: Iterable[Figure]) -> list[str]:
    """A line for each, in columns."""
    lines = []
    for figure in figures:
        value = f"{figure.value:,.2f}" if figure.value < 100 else f"{figure.value:,.0f}"
        line = f"  {figure.name:<26}{value:>12} {figure.unit}"
        if figure.target is not None:
            line = f"{line:<50} {'met' if figure.is_met else 'MISSED'} (target {figure.target:g})"
        lines.append(line.rstrip())
    return lines
