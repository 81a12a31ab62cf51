"""What a transactional handler writes is there once for each job, however often its workers are killed or freeze."""

from __future__ import annotations

from jobs.prove.stage.breaking import replace
from jobs.prove.stage.counts import COMPLETED
from jobs.prove.stage.freezing import freeze_once
from jobs.prove.stage.proof import Proof, Size, all_of, none_of
from jobs.prove.stage.stage import Stage
from jobs.prove.stage.storm import storm
from jobs.worker import executor
from scheduler_project.lib.figures import Figure

SEATS = 4
WRITTEN_TWICE = "select count(*) from (select from prove_effects group by job_id having count(*) > 1) as more"
NOT_WRITTEN = """
select count(*) from jobs
 where status = 'completed' and not exists (select from prove_effects e where e.job_id = jobs.id)
"""
NOT_COMPLETED = """
select count(distinct job_id) from prove_effects e join jobs j on j.id = e.job_id where j.status <> 'completed'
"""


def run(stage: Stage) -> list[Figure]:
    """Workers freeze over the handlers' open transactions, and wake up; then a storm of kills."""
    queue = stage.queue(lease_s=2)
    stage.scheduler()
    sleeper, helper = stage.worker(SEATS), stage.worker(SEATS)
    stage.until_ready(2)
    for number in range(1, stage["freezes"] + 1):
        stage.say(f"freeze {number} of {stage['freezes']}")
        freeze_once(stage, queue, "prove.once", sleeper, helper, SEATS)
        wanted = number * SEATS
        stage.until_count(lambda: len(sleeper.events("late_result_refused")), wanted, 5)
    ghosts = len(sleeper.events("late_result_refused"))
    sleeper.kill()
    helper.kill()
    stage.submit(queue, stage["jobs"], "prove.once", payload={"ms": 40})
    with storm(stage, 3, seats=SEATS, every_s=0.7) as weather:
        stage.until(lambda: weather.kills >= stage["kills"], 60 + 2 * stage["kills"], "workers are killed")
    stage.say(f"{weather.kills} workers were killed")
    stage.until_all_ended()
    total = stage["jobs"] + stage["freezes"] * SEATS
    return [
        all_of("completed", stage.value(COMPLETED), total, "jobs"),
        none_of("written_twice", stage.value(WRITTEN_TWICE), "jobs"),
        none_of("completed_not_written", stage.value(NOT_WRITTEN), "jobs"),
        none_of("written_not_completed", stage.value(NOT_COMPLETED), "jobs"),
        all_of("ghosts_rolled_back", ghosts, stage["freezes"] * SEATS, "attempts"),
        Figure("attempts_lost", stage.value("select count(*) from job_executions where status = 'lost'")),
        Figure("kills", weather.kills),
    ]


def _without_transaction() -> None:
    replace(executor, "run_in_transaction", lambda run, *_more: run())


PROOF = Proof(
    name="exactly-once",
    run=run,
    sizes={"jobs": Size(300, 20_000), "kills": Size(4, 200), "freezes": Size(1, 20)},
    breaks={"transaction": _without_transaction},
)
