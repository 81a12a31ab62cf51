"""No job is handed to two workers, and none is forgotten."""

from __future__ import annotations

from jobs.prove.stage.breaking import rewrite
from jobs.prove.stage.counts import COMPLETED, STARTED_TWICE
from jobs.prove.stage.proof import Proof, Size, all_of, none_of
from jobs.prove.stage.stage import Stage
from scheduler_project.lib.figures import Figure


def run(stage: Stage) -> list[Figure]:
    """Several workers race for the same jobs; each handler leaves a trace that the engine knows nothing of."""
    queues = [stage.queue(f"q{number}", lease_s=60) for number in range(3)]
    stage.do("update queues set is_paused = true")
    each = stage["jobs"] // len(queues)
    for queue in queues:
        stage.submit(queue, each)
    for _ in range(stage["workers"]):
        stage.worker(seats=4)
    stage.until_ready(stage["workers"])
    stage.say(f"{each * len(queues):,} jobs, {stage['workers']} workers")
    stage.do("update queues set is_paused = false")
    stage.until_all_ended()
    never = "select count(*) from jobs where not exists (select from prove_effects e where e.job_id = jobs.id)"
    return [
        all_of("completed", stage.value(COMPLETED), each * len(queues), "jobs"),
        none_of("started_twice", stage.value(STARTED_TWICE), "jobs"),
        # What was claimed ahead and waits too long for a seat goes back unbegun: that is no second start.
        Figure("given_back_unbegun", stage.value("select count(*) from jobs where fencing_number > 1"), "jobs"),
        none_of("never_started", stage.value(never), "jobs"),
    ]


def _without_row_locks() -> None:
    # Two workers read the same rows; the slower one's update waits and then takes what the faster one has.
    rewrite("CLAIM", "for no key update skip locked", "")


PROOF = Proof(
    name="claim",
    run=run,
    sizes={"jobs": Size(2_000, 60_000), "workers": Size(4, 8)},
    breaks={"row_locks": _without_row_locks},
)
