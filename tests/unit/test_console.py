"""Prefixed lines on whatever terminal there is."""

from __future__ import annotations

import io

import pytest

from scheduler_project.lib.console import Console, has_colour


@pytest.mark.parametrize(
    ("environment", "is_terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
    ],
)
def test_colour_is_for_terminals_unless_told_otherwise(environment, is_terminal, expected):
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal  # type: ignore[method-assign]

    assert has_colour(stream, environment) is expected


def test_letters_that_a_terminal_lacks_do_not_stop_it():
    raw = io.BytesIO()
    console = Console(io.TextIOWrapper(raw, encoding="ascii", write_through=True), ["a"])

    console.line("a", "naïve →")

    assert raw.getvalue() == b"a | na\\xefve \\u2192\n"
    assert not console.is_broken
