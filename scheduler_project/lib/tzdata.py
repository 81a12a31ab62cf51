"""Which time-zone data this process computes with: the pinned package's, never the host's."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def tzdata_version() -> str:
    """The version of the tzdata package, such as 2026.6; empty if it is not installed."""
    try:
        return version("tzdata")
    except PackageNotFoundError:
        return ""
