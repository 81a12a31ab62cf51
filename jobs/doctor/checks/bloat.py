"""Tables full of dead rows, tables that nobody cleans, and transaction numbers that run out."""

from __future__ import annotations

from jobs.doctor import catalog
from jobs.doctor.finding import Findings, problem, warning

MOST_DEAD, DEAD_PER_LIVE = 50_000, 1.0
MOST_AGE = 1.5


def look() -> Findings:
    """Each table, then the database."""
    for name, live, dead, is_off in catalog.tables():
        if is_off:
            yield problem(f"autovacuum is off for {name}", f"alter table {name} reset (autovacuum_enabled)")
        if dead > MOST_DEAD and dead > live * DEAD_PER_LIVE:
            yield warning(
                f"{name} has {dead} dead rows beside {live} live ones",
                f"see the check horizon for what keeps them; then vacuum (verbose) {name}",
            )
    age, limit = catalog.transaction_age()
    if age > limit * MOST_AGE:
        yield problem(
            f"the oldest row was frozen {age} transactions ago, the server's limit is {limit}",
            "find what keeps autovacuum from freezing (check horizon), then vacuum (freeze) the database",
        )
