"""How much work a test does: a fraction in the suite, for the sake of its time, and all of it when asked.

``FULL=1`` asks for the full size of every test, a variable of the test's own (``STORM_JOBS=5000``) for any size.
"""

from __future__ import annotations

import os

import pytest

IS_FULL = os.environ.get("FULL") == "1"
#: Rows of the tables whose query plans are judged; on far fewer, reading all of them would be right.
PLAN_ROWS = int(os.environ.get("PLAN_ROWS") or (1_000_000 if IS_FULL else 60_000))
#: For what takes long and shows again what a shorter test or a proof shows.
long = pytest.mark.skipif(not IS_FULL, reason="takes long; FULL=1 runs it")


def proved_by(name: str) -> pytest.MarkDecorator:
    """For what takes long and what the proof of that name shows again, which CI runs after the suite."""
    return pytest.mark.skipif(not IS_FULL, reason=f"`manage.py prove {name}` shows it too; FULL=1 runs this")


def size(name: str, *, suite: float, full: float) -> int:
    """The size that the environment variable ``name`` asks for, or else the one of this run."""
    return int(seconds(name, suite=suite, full=full))


def seconds(name: str, *, suite: float, full: float) -> float:
    """As ``size``, for times."""
    return float(os.environ.get(name) or (full if IS_FULL else suite))
