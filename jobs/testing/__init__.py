"""For people who write handlers: run them inline, drain a queue, see what was submitted, let time pass.

docs/handlers/testing.md shows how. ``pytest_plugins = ["jobs.testing.plugin"]`` makes fixtures of them.
"""

from jobs.testing.clock import time_passes
from jobs.testing.draining import Ran, StillBusy, drain
from jobs.testing.inline import Inline, run_inline
from jobs.testing.submitted import assert_not_submitted, assert_submitted

__all__ = [
    "Inline",
    "Ran",
    "StillBusy",
    "assert_not_submitted",
    "assert_submitted",
    "drain",
    "run_inline",
    "time_passes",
]
