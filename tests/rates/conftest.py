"""The personas, and purses that are empty at the start: the database of each test knows of no taken tokens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orgs.token_bucket import empty_purses
from tests.personas import *  # noqa: F403
from tests.personas import _without_collected_files  # noqa: F401


@pytest.fixture(autouse=True)
def _empty_purses() -> Iterator[None]:
    empty_purses()
    yield
    empty_purses()
