"""Is there a database that can be worked with?"""

from __future__ import annotations

from jobs.doctor import catalog
from jobs.doctor.finding import Findings, problem
from scheduler_project.lib.database import find_connection_problem

#: MERGE, and statistics that the counts rest on.
OLDEST_VERSION = 150_000


def look() -> Findings:
    """Reachable, new enough, writable, in an encoding that takes all text."""
    if said := find_connection_problem():
        yield problem(f"can not be reached: {said}", "look at APP_DATABASE_URL, the server and the way to it")
        return
    number, version, is_standby, encoding = catalog.identity()
    if number < OLDEST_VERSION:
        yield problem(f"PostgreSQL {version} is too old", f"use PostgreSQL {OLDEST_VERSION // 10_000} or newer")
    if is_standby:
        yield problem("is a standby, which takes no writes", "let APP_DATABASE_URL lead to the primary")
    if encoding != "UTF8":
        yield problem(f"its encoding is {encoding}: not every text can be stored", "make a database with encoding UTF8")
