"""Asking the doctor."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command

Ask = Callable[..., list[dict[str, Any]]]


def doctor(*args: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what was said."""
    said, code = io.StringIO(), 0
    try:
        call_command("doctor", "--json", *args, stdout=said)
    except SystemExit as end:
        code = int(str(end.code))
    answer: dict[str, Any] = json.loads(said.getvalue())
    return code, answer


@pytest.fixture
def names(db: None) -> Callable[..., None]:
    """Asserts that a check names a fault, says what to do, and how bad it is."""

    def check(name: str, text: str, level: str = "problem") -> None:
        code, answer = doctor("--only", name)
        found = [one for one in answer["findings"] if text in one["text"]]
        assert found, answer
        assert found[0]["check"] == name
        assert found[0]["level"] == level
        assert found[0]["do"]
        assert code == (1 if answer["problems"] else 0)

    return check
