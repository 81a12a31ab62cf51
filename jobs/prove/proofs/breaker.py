"""A target that is down is hardly called, no attempt is used meanwhile, and one job at a time probes it."""

from __future__ import annotations

import time

from jobs.prove.stage.breaking import rewrite
from jobs.prove.stage.counts import COMPLETED
from jobs.prove.stage.proof import Proof, Size, all_of, at_most, none_of
from jobs.prove.stage.stage import Stage
from jobs.prove.stage.target import target
from scheduler_project.lib.figures import Figure

COOL_S = 2
STATE = "select state from circuit_breakers"
IN_FLIGHT = "select count(*) from jobs where status in ('claimed', 'running')"


def run(stage: Stage) -> list[Figure]:
    """A target that answers 503 for a while, called by the jobs of several workers."""
    queue = stage.queue(lease_s=30)
    with target() as shop:
        shop.is_up = False
        payload = {"port": shop.port, "name": "shop"}
        stage.submit(queue, stage["jobs"], "prove.call", payload=payload, max_attempts=5)
        stage.scheduler()
        for _ in range(stage["workers"]):
            stage.worker(2)
        stage.until(lambda: stage.value(STATE) in ("open", "half_open"), 60, "the circuit opens")
        stage.until(lambda: not stage.value(IN_FLIGHT), 30, "calls under way come back")
        before, shop.most, shop.slow_s = len(shop.reached), 0, 0.3
        stage.say(f"open after {before} calls; down for {stage['down_s']} s")
        until = time.monotonic() + stage["down_s"]
        stage.until(lambda: time.monotonic() > until, stage["down_s"] + 5, "the target is down")
        down = len(shop.reached)
        at_once = shop.most
        used = stage.value("select coalesce(sum(attempt_count), 0) from jobs")
        shop.is_up, shop.slow_s = True, 0.0
        stage.until_all_ended()
    return [
        at_most("calls_while_down", down, before + stage["down_s"] / COOL_S + 1, "calls"),
        all_of("probes", down - before, 1, "calls"),
        at_most("probes_at_once", at_once, 1, "calls"),
        at_most("attempts_used_while_down", used, down, "attempts"),
        none_of("dead_letters", stage.value("select count(*) from dead_letter_queue")),
        all_of("completed", stage.value(COMPLETED), stage["jobs"], "jobs"),
    ]


def _without_gate() -> None:
    rewrite("CLAIM", "wanted.circuits is null or job.circuit is null", "true")


PROOF = Proof(
    name="breaker",
    run=run,
    sizes={"jobs": Size(200, 2_000), "workers": Size(3, 8), "down_s": Size(7, 60)},
    breaks={"gate": _without_gate},
    env={"APP_BREAKER_COOL_DOWN_SECS": str(COOL_S)},
)
