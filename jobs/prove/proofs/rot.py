"""A claim costs the same with a long history, with far plans, and under an old snapshot that keeps dead rows alive."""

from __future__ import annotations

import time

import psycopg

from jobs.lifecycle.claim import HEAD, Want
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.counts import COMPLETED
from jobs.prove.stage.proof import Proof, Size, all_of, at_most
from jobs.prove.stage.stage import Stage
from jobs.worker.roster import QueueState, Roster
from queues.models import Queue
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.ids import NEW_ID

FILL = f"""
insert into jobs (id, project_id, queue_id, job_type, payload, status, run_at, completed_at)
select {NEW_ID}, project_id, id, %s, '{{}}', %s, clock_timestamp() + make_interval(secs => %s),
       case when %s = 'completed' then clock_timestamp() end
  from queues, generate_series(1, %s) where id = %s
"""  # noqa: S608 - a constant
READ = "select idx_tup_read from pg_stat_user_indexes where indexrelname = 'jobs_ready'"


def run(stage: Stage) -> list[Figure]:
    """Drain without and with a history; then under an old snapshot, behind the dead entries of a first drain."""
    queue = stage.queue(lease_s=60)
    stage.worker(20)
    stage.until_ready(1)
    _drain(stage, queue)  # the first drain of a database is the slowest, whatever it drains
    fresh, _ = _drain(stage, queue)
    stage.say(f"{stage['history']:,} ended jobs, {stage['future']:,} planned ones")
    stage.do(FILL, "noop", "completed", -3600, "completed", stage["history"], queue.pk)
    stage.do(FILL, "noop", "scheduled", 86_400, "scheduled", stage["future"], queue.pk)
    stage.do("vacuum analyze jobs")
    full, _ = _drain(stage, queue)
    with psycopg.connect(stage.url) as old:
        old.execute("set transaction isolation level repeatable read")
        old.execute("select count(*) from queues")
        _drain(stage, queue)
        held, _ = _drain(stage, queue)
        _, entries = _drain(stage, queue, "sleep_10")  # longer jobs are claimed by few at a time
        old.rollback()
    return [
        all_of("drained", stage.value(COMPLETED) - stage["history"], 6 * stage["jobs"], "jobs"),
        Figure("empty", fresh, "jobs/s"),
        at_most("slower_with_history", fresh / full, 3, "times"),
        at_most("slower_under_old_snapshot", fresh / held, 3, "times"),
        at_most("entries_read", entries, stage["entries"], "of the claim's index a job, under it"),
    ]


def _drain(stage: Stage, queue: Queue, job_type: str = "noop") -> tuple[float, float]:
    """Jobs a second, and entries of the claim's index that were read for each."""
    stage.do("update queues set is_paused = true")
    stage.do(FILL, job_type, "queued", 0, "queued", stage["jobs"], queue.pk)
    stage.do("analyze jobs")
    done, read = stage.value(COMPLETED), _read(stage)
    stage.do("update queues set is_paused = false")
    began = time.monotonic()
    stage.do("select pg_notify('punctual', 'work ' || %s)", str(queue.pk))
    stage.until(lambda: stage.value(COMPLETED) - done >= stage["jobs"], 300, "the queue is drained", every_s=0.05)
    took_s = time.monotonic() - began
    rate, entries = stage["jobs"] / took_s, (_read(stage) - read) / stage["jobs"]
    stage.say(f"{rate:,.0f} jobs a second, {entries:.1f} entries of the index for each")
    return rate, entries


def _read(stage: Stage) -> int:
    """Sessions tell their counts a second late."""
    time.sleep(1.5)
    return int(stage.value(READ))


def _from_the_head() -> None:
    def want(_roster: Roster, state: QueueState, seats: int) -> Want:
        return Want(state.queue_id, seats, HEAD, state.is_gated)

    replace(Roster, "_want", want)


PROOF = Proof(
    name="rot",
    run=run,
    sizes={
        "jobs": Size(4_000, 60_000),
        "history": Size(50_000, 5_000_000),
        "future": Size(20_000, 1_000_000),
        "entries": Size(200, 3_000),
    },
    breaks={"positions": _from_the_head},
    env={"APP_WORKER_POLL_INTERVAL_MS": "1000"},
)
