"""What workers and schedulers count in their own process, as one table: docs/metrics.md says what each means.

What jobs have done is not counted here: the web's /metrics reads it from the database
(jobs/selectors/metrics.py), so that each series has one source.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence

from prometheus_client import Counter, Gauge, Histogram

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_MANY = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000)

CLAIMED = Counter("jobs_claimed", "Jobs this worker claimed.", ["queue", "worker_id"])
SETTLED = Counter("jobs_settled", "Attempts this worker ended, by the status they left the job in.", ["status"])
REFUSED = Counter("late_results_refused", "Results dropped because the lease was lost.")
GHOSTS = Counter("handlers_given_up", "Attempts ended without their handler, which did not stop when told to.")
ACTIVE = Gauge("worker_active_jobs", "Handlers that run now.", ["worker_id"])
WORKER_UP = Gauge("worker_up", "1 while the worker serves, also while it drains.", ["worker_id"])
LISTENING = Gauge(
    "listener_connected", "1 while hints are heard; without them work is found by poll.", multiprocess_mode="livemax"
)
CLAIM_S = Histogram("claim_duration_seconds", "A round trip that asked for work.", buckets=_FAST)
SETTLE_SIZE = Histogram("settle_batch_size", "Attempts ended in one round trip.", buckets=_MANY)

RESCUED = Counter("scheduler_rescues", "Attempts this leader ended because their lease ran out.")
ARCHIVED = Counter("jobs_archived", "Ended jobs that moved to the archive.")
PROMOTED = Counter("jobs_promoted", "Scheduled jobs that became due.")
FIRES = Counter("schedule_due_times", "Due times of schedules, by what became of them.", ["outcome", "reason"])
IS_LEADER = Gauge("scheduler_is_leader", "1 while this process leads the scheduling.", multiprocess_mode="livemax")
LAG = Gauge(
    "scheduler_lag_seconds",
    "By how much this leader's latest duty began later than it was due.",
    multiprocess_mode="livemax",
)
DUTY_S = Histogram("scheduler_duty_seconds", "How long one round of a duty took.", ["duty"], buckets=_FAST)
DUTY_FAILURES = Counter("scheduler_duty_failures", "Rounds of a duty that failed.", ["duty"])


def count_settled(statuses: Mapping[str, str]) -> None:
    """Count what a round trip settled."""
    if statuses:
        SETTLE_SIZE.observe(len(statuses))
    for status, count in Tally(statuses.values()).items():
        SETTLED.labels(status).inc(count)


def count_claimed(worker_id: str, queues: Sequence[str]) -> None:
    """Count claimed jobs by their queues' paths."""
    for queue, count in Tally(queues).items():
        CLAIMED.labels(queue, worker_id).inc(count)


def count_fires(decided: Sequence[tuple[str, str]]) -> None:
    """Count (outcome, reason) of due times."""
    for (outcome, reason), count in Tally(decided).items():
        FIRES.labels(outcome, reason).inc(count)
