"""Workers are killed at any moment: every job ends, once, and the history tells what happened."""

from __future__ import annotations

from jobs.prove.stage.breaking import rewrite
from jobs.prove.stage.counts import COMPLETED, COMPLETED_TWICE, STARTED_TWICE, UNTRUE_HISTORIES
from jobs.prove.stage.proof import Proof, Size, all_of, at_most, none_of
from jobs.prove.stage.stage import Stage
from jobs.prove.stage.storm import storm
from scheduler_project.lib.figures import Figure

SEATS = 4
UNRECORDED = """
select count(*) from prove_effects s where kind = 'start' and not exists
 (select from job_executions e where e.job_id = s.job_id and e.fencing_number = s.fencing_number)
"""


def run(stage: Stage) -> list[Figure]:
    """SIGKILL one worker after another until the jobs are done."""
    queue = stage.queue()
    stage.submit(queue, stage["jobs"], payload={"ms": 100})
    stage.scheduler()
    with storm(stage, stage["workers"], seats=SEATS, every_s=0.7) as weather:
        stage.until(lambda: weather.kills >= stage["kills"], 60 + 2 * stage["kills"], "workers are killed")
    stage.say(f"{weather.kills} workers were killed")
    stage.until_all_ended()
    starts = stage.value("select count(*) from prove_effects where kind = 'start'")
    attempts = stage.value("select count(*) from job_executions")
    return [
        all_of("kills", weather.kills, stage["kills"]),
        all_of("completed", stage.value(COMPLETED), stage["jobs"], "jobs"),
        none_of("completed_twice", stage.value(COMPLETED_TWICE), "jobs"),
        none_of("untrue_histories", stage.value(UNTRUE_HISTORIES), "jobs"),
        none_of("unrecorded_starts", stage.value(UNRECORDED)),
        # A kill between claim and first statement leaves an attempt without a trace of ours, one for each seat.
        at_most("attempts_without_start", attempts - starts, weather.kills * SEATS * 2),
        Figure("attempts_lost", stage.value("select count(*) from job_executions where status = 'lost'")),
        Figure("ran_more_than_once", stage.value(STARTED_TWICE), "jobs"),
    ]


def _without_reaper() -> None:
    rewrite("EXPIRED", "lease_expires_at < clock_timestamp()", "false")


PROOF = Proof(
    name="crash",
    run=run,
    sizes={"jobs": Size(600, 20_000), "kills": Size(6, 200), "workers": Size(3, 4)},
    breaks={"reaper": _without_reaper},
)
