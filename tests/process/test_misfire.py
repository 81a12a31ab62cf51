"""The scheduler is down over ten due times: the ledger has ten rows, by each policy's rule, and none twice.

A minute is the shortest time between two due times. STOPPED_MIN=11 really stops the scheduler for as long; without it
the scheduler is stopped just as well, and the plans are put back by the time it would have been.
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta

import pytest
from django.db.models import F

from jobs.models import Job, LeaderTerm, ScheduledJob, ScheduleFire
from jobs.services.backfill import backfill
from jobs.services.schedules import create_schedule
from queues.models import Queue
from scheduler_project.lib.sql import database_now
from tests.processes import scheduler
from tests.sizes import size
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

STOPPED_MIN = size("STOPPED_MIN", suite=0, full=11)
#: What of ten missed due times runs, by policy; the cap of run_all is four here.
RUNS = {"skip": 0, "run_once": 1, "run_all": 4}


@pytest.mark.timeout(300 + 60 * STOPPED_MIN)
def test_each_policys_ledger_is_complete_after_ten_due_times_without_a_scheduler(committed_queue: Queue) -> None:
    schedules = {
        policy: create_schedule(
            committed_queue,
            name=policy,
            cron_expression="* * * * *",
            job_type="noop",
            misfire_policy=policy,
            misfire_cap=4,
            misfire_grace_secs=5,
        )
        for policy in RUNS
    }
    with scheduler() as first:
        wait_until(LeaderTerm.objects.exists)
        first.kill()
    # Not right before a due time: one that is caught in time is not run for those that were missed.
    wait_until(lambda: 2 < database_now().second < 45, timeout_s=30)
    stopped_at = database_now()
    if STOPPED_MIN:
        time.sleep(60 * STOPPED_MIN)  # the case itself: a scheduler that is away for so long
    else:
        ScheduledJob.objects.update(next_run_at=F("next_run_at") - timedelta(minutes=11))
        stopped_at -= timedelta(minutes=11)

    with scheduler(), scheduler():
        wait_until(lambda: not ScheduledJob.objects.filter(next_run_at__lt=database_now()).exists(), timeout_s=30)
    for policy, schedule in schedules.items():
        rows = list(ScheduleFire.objects.filter(scheduled_job=schedule).order_by("due_at"))
        due_times = [row.due_at for row in rows]
        assert due_times == [due_times[0] + timedelta(minutes=n) for n in range(len(rows))], "a gap or a double"
        # Only what was missed is judged here: a due time may come in the very moment of the start.
        missed = [row for row in rows if stopped_at < row.due_at < stopped_at + timedelta(minutes=10)][:10]
        print(f"\n{policy}: {len(rows)} rows, {Counter((row.outcome, row.reason) for row in missed)}")
        assert len(missed) == 10
        assert len(rows) >= 10
        fired = [row for row in rows if row.outcome == "fired"]
        late = [row for row in rows if row.late_ms and row.late_ms > 5_000 and row.outcome == "fired"]
        assert len(late) == RUNS[policy]
        assert len({row.job_id for row in fired}) == len(fired)
        assert {row.reason for row in rows if row.outcome == "skipped"} <= {"misfire"}

    skip = schedules["skip"]
    made = Job.objects.filter(scheduled_job=skip).count()
    until = database_now()
    first_fill = backfill(skip.pk, since=stopped_at, until=until, only_missed=True)
    assert len(first_fill.job_ids) >= 10
    assert backfill(skip.pk, since=stopped_at, until=until, only_missed=True).job_ids == []
    assert Job.objects.filter(scheduled_job=skip).count() == made + len(first_fill.job_ids)
