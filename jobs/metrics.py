"""Every Prometheus name, as one table; labels and the rest of the specification's list come with their issue."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence

from prometheus_client import Counter, Gauge

CLAIMED = Counter("jobs_claimed", "Jobs this worker claimed.")
SETTLED = Counter("jobs_settled", "Attempts this worker ended, by the status they left the job in.", ["status"])
REFUSED = Counter("late_results_refused", "Results dropped because the lease was lost.")
RESCUED = Counter("lease_expirations", "Attempts that were ended because their lease ran out.")
ARCHIVED = Counter("jobs_archived", "Ended jobs that moved to the archive.")
PROMOTED = Counter("jobs_promoted", "Scheduled jobs that became due.")
FIRES = Counter("schedule_due_times", "Due times of schedules, by what became of them.", ["outcome", "reason"])
IS_LEADER = Gauge("scheduler_is_leader", "1 while this process leads the scheduling.")


def count_settled(statuses: Mapping[str, str]) -> None:
    """Count what a round trip settled."""
    for status, count in Tally(statuses.values()).items():
        SETTLED.labels(status).inc(count)


def count_fires(decided: Sequence[tuple[str, str]]) -> None:
    """Count (outcome, reason) of due times."""
    for (outcome, reason), count in Tally(decided).items():
        FIRES.labels(outcome, reason).inc(count)
