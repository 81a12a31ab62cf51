"""Deploys under load: workers leave one after another and others come, and no job pays with an attempt."""

from __future__ import annotations

import os

from jobs.prove.stage.breaking import replace
from jobs.prove.stage.counts import COMPLETED
from jobs.prove.stage.proof import Proof, Size, all_of, none_of
from jobs.prove.stage.stage import Stage
from jobs.worker.runtime import Runtime
from scheduler_project.lib.figures import Figure

#: A job as short as these is written as running only if it takes longer than expected.
IN_FLIGHT = "select count(*) from jobs where status in ('claimed', 'running')"
GRACE_S = 2
LEAVE_S = 40.0


def run(stage: Stage) -> list[Figure]:
    """SIGTERM one worker after another under load, as a rolling deploy does; some jobs are longer than the grace."""
    queue = stage.queue(lease_s=4)
    stage.scheduler()
    workers = [stage.worker(4) for _ in range(stage["workers"])]
    stage.until_ready(len(workers))
    codes: list[int | None] = []
    made = 0
    for number in range(stage["deploys"]):
        stage.say(f"deploy {number + 1} of {stage['deploys']}")
        long = stage.submit(queue, 2, "prove.polite", payload={"ms": GRACE_S * 1_500}, priority=1)
        stage.submit(queue, stage["jobs"], payload={"ms": 40})
        made += len(long) + stage["jobs"]
        stage.until(lambda: stage.value(IN_FLIGHT) >= 4, 30, "jobs are under way")
        for index, leaving in enumerate(workers):
            workers[index] = stage.worker(4)
            leaving.tell_to_stop()
            codes.append(leaving.wait(LEAVE_S))
            leaving.kill()
    stage.until_all_ended()
    by_status = dict(stage.rows("select status, count(*) from job_executions group by status"))
    return [
        all_of("left_by_themselves", sum(code == 0 for code in codes), len(codes), "workers"),
        all_of("completed", stage.value(COMPLETED), made, "jobs"),
        none_of("attempts_burned", stage.value("select coalesce(sum(attempt_count - 1), 0) from jobs")),
        none_of("attempts_lost", by_status.get("lost", 0)),
        Figure("interrupted", by_status.get("interrupted", 0), "attempts"),
    ]


def _without_drain() -> None:
    replace(Runtime, "_drain", lambda _self: os._exit(0))


PROOF = Proof(
    name="shutdown",
    run=run,
    sizes={"jobs": Size(150, 2_000), "deploys": Size(2, 30), "workers": Size(2, 4)},
    breaks={"drain": _without_drain},
    env={"APP_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": str(GRACE_S)},
)
