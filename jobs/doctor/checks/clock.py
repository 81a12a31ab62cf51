"""Does this host's clock say what the database's says? The database's decides; people read both."""

from __future__ import annotations

import time

from jobs.doctor.finding import Findings, problem, warning
from scheduler_project.lib.sql import database_now

NOTABLE_S, FAR_S = 2.0, 30.0


def look() -> Findings:
    """The difference, less what the question took."""
    before = time.time()
    theirs = database_now().timestamp()
    after = time.time()
    off_s = (before + after) / 2 - theirs
    if abs(off_s) < NOTABLE_S + (after - before) / 2:
        return
    text = f"this host is {abs(off_s):.1f} s {'ahead of' if off_s > 0 else 'behind'} the database"
    do = "let both hosts follow the same time server (timedatectl, chronyc tracking)"
    if abs(off_s) >= FAR_S:
        yield problem(f"{text}: tokens and signatures of webhooks are refused, logs mislead", do)
    else:
        yield warning(text, do)
