"""No due time is passed over in silence: whatever a scheduler missed is in the ledger, by each policy's rule."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F

from jobs.models import ScheduledJob, ScheduleFire
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.proof import Proof, Size, all_of, none_of
from jobs.prove.stage.stage import Stage
from jobs.services import firing
from jobs.services.backfill import backfill
from jobs.services.schedules import create_schedule
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.sql import database_now

CAP, GRACE_S = 4, 5
#: What of the missed due times runs, by policy.
RUNS = {"skip": 0, "run_once": 1, "run_all": CAP}
MINUTE = timedelta(minutes=1)


def run(stage: Stage) -> list[Figure]:
    """No scheduler for ``missed`` due times of many schedules; then two begin at once, and one of them is killed."""
    queue = stage.queue()
    schedules = [
        create_schedule(
            queue, name=f"{policy} {number}", cron_expression="* * * * *", job_type="noop", misfire_policy=policy,
            misfire_cap=CAP, misfire_grace_secs=GRACE_S,
        )
        for policy in RUNS for number in range(stage["schedules"])
    ]  # fmt: skip
    missed = stage["missed"]
    # The plans are put back by the time that the scheduler would have been away.
    away = MINUTE * (missed + 1)
    stopped_at = database_now() - away
    ScheduledJob.objects.update(next_run_at=F("next_run_at") - away)
    stage.say(f"{len(schedules)} schedules, {missed} due times each without a scheduler")
    first, _ = stage.scheduler(), stage.scheduler()
    stage.until(ScheduleFire.objects.exists, 30, "schedules are fired", every_s=0.005)
    first.kill()
    late = ScheduledJob.objects.filter(next_run_at__lt=database_now() - timedelta(seconds=2), is_active=True)
    stage.until(lambda: not late.exists(), 60, "all due times are decided")
    gaps = doubles = wrong = unexplained = 0
    for schedule in schedules:
        rows = list(ScheduleFire.objects.filter(scheduled_job=schedule).order_by("due_at"))
        times = {row.due_at for row in rows}
        doubles += len(rows) - len(times)
        gaps += (max(times) - min(times)) // MINUTE + 1 - len(times)
        of_gap = [row for row in rows if row.decided_at == rows[0].decided_at]  # together, as one decision
        gaps += max(0, missed - len(of_gap))
        if not _is_by_policy(schedule.misfire_policy, of_gap):
            wrong += 1
            stage.say(f"{schedule.name}: {[(row.outcome, row.late_ms) for row in of_gap]}")
        unexplained += sum(row.outcome == "skipped" and row.reason != "misfire" for row in rows)
    skipped = [one for one in schedules if one.misfire_policy == "skip"]
    again = sum(_backfilled_twice(one, stopped_at, stopped_at + MINUTE * missed) for one in skipped)
    return [
        all_of("ledger_rows", ScheduleFire.objects.count(), len(schedules) * missed),
        none_of("gaps", gaps, "due times"),
        none_of("doubles", doubles, "due times"),
        none_of("policy_not_followed", wrong, "schedules"),
        none_of("without_reason", unexplained, "due times"),
        none_of("second_backfill_ran", again, "jobs"),
    ]


def _is_by_policy(policy: str, rows: list[ScheduleFire]) -> bool:
    """Did as many of the missed due times run as the policy says? One on time stands for run_once's."""
    fired = [(row.late_ms or 0) > GRACE_S * 1000 for row in rows if row.outcome == "fired"]
    late, has_one_on_time = sum(fired), not all(fired)
    return late == RUNS[policy] or (policy == "run_once" and late == 0 and has_one_on_time)


def _backfilled_twice(schedule: ScheduledJob, since: datetime, until: datetime) -> int:
    """How many jobs the second backfill of the same window makes."""
    backfill(schedule.pk, since=since, until=until, only_missed=True)
    return len(backfill(schedule.pk, since=since, until=until, only_missed=True).job_ids)


def _one_by_one() -> None:
    # A scheduler that catches up one due time after the other, and judges each as if it were the only one.
    replace(firing, "times_until", lambda _schedule, first, _until: ([first], 0))


PROOF = Proof(
    name="misfire",
    run=run,
    sizes={"schedules": Size(5, 100), "missed": Size(10, 200)},
    breaks={"together": _one_by_one},
)
