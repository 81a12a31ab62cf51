"""What keeps dead rows from being cleaned up, old transactions above all: claims become slower and slower."""

from __future__ import annotations

from jobs.doctor import catalog
from jobs.doctor.finding import Finding, Findings, Level

NOTABLE_S, LONG_S = 60.0, 600.0
#: Transactions a slot or standby may lag behind.
MOST_AGE = 1_000_000


def look() -> Findings:
    """Sessions, prepared transactions, replication slots and standbys, each by its name."""
    for pid, user, name, state, seconds, age, query in catalog.old_transactions(NOTABLE_S):
        yield Finding(
            Level.PROBLEM if seconds >= LONG_S else Level.WARNING,
            f"session {pid} (user {user}, application {name or '-'}, {state}) is in a transaction for {seconds:.0f} s "
            f"and keeps the dead rows of the last {age} transactions; last query: {query}",
            f"end it: select pg_terminate_backend({pid}); and set idle_in_transaction_session_timeout for its role",
        )
    for gid, owner, seconds in catalog.prepared_transactions(NOTABLE_S):
        yield Finding(
            Level.PROBLEM, f"the prepared transaction {gid} of {owner} waits for {seconds:.0f} s to be ended",
            f"rollback prepared '{gid}', or commit it",
        )  # fmt: skip
    for slot, is_active, age in catalog.holding_slots():
        if age > MOST_AGE:
            yield Finding(
                Level.PROBLEM,
                f"the replication slot {slot} ({'active' if is_active else 'not used'}) is {age} transactions behind",
                f"let its reader catch up, or drop it: select pg_drop_replication_slot('{slot}')",
            )
    for pid, name, age in catalog.holding_standbys():
        if age > MOST_AGE:
            yield Finding(
                Level.WARNING, f"queries on the standby {name} ({pid}) keep rows of the last {age} transactions",
                "set hot_standby_feedback = off there, or end its long queries",
            )  # fmt: skip
