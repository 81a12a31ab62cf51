"""The leading scheduler is killed, freezes or vanishes: another leads soon, and nothing due is lost or doubled."""

from __future__ import annotations

import random
import statistics
from functools import partial

from jobs.prove.stage.breaking import replace
from jobs.prove.stage.counts import STARTED_TWICE
from jobs.prove.stage.leading import NOT_BEGUN, SPAN_S, lateness, leader_of, let_pass, submit_due, until_begun
from jobs.prove.stage.proof import Proof, Size, at_most, none_of
from jobs.prove.stage.stage import Stage
from jobs.prove.stage.vanishing import vanish
from jobs.scheduler import daemon
from jobs.scheduler.leader import Leadership
from scheduler_project.lib import pg
from scheduler_project.lib.figures import Figure

KILLED, FROZEN = 1, 2


def run(stage: Stage) -> list[Figure]:
    """Let leaders vanish, kill and freeze them while jobs come due; how late each began, by the handler's own trace."""
    vanished = vanish(stage)
    queue = stage.queue(lease_s=60)
    stage.worker(10)
    pair = [stage.scheduler(), stage.scheduler()]
    lot = random.Random(5)  # noqa: S311 - the moment of the fault
    for number in range(1, stage["kills"] + 1):
        stage.say(f"kill {number} of {stage['kills']}")
        leader = leader_of(stage, pair)
        submit_due(stage, queue, KILLED)
        let_pass(stage, lot.uniform(0.3, SPAN_S - 0.5))
        pair[pair.index(leader)].kill()
        pair[pair.index(leader)] = stage.scheduler()
        until_begun(stage)
    for number in range(1, stage["freezes"] + 1):
        stage.say(f"freeze {number} of {stage['freezes']}")
        leader = leader_of(stage, pair)
        submit_due(stage, queue, FROZEN)
        leader.freeze()
        until_begun(stage)
        leader.resume()
        stage.until(partial(leader.events, "leadership_lost"), 20, "the one that froze learns that it leads no more")
    killed, frozen = lateness(stage, KILLED), lateness(stage, FROZEN)
    return [
        *vanished,
        at_most("late_p95", statistics.quantiles(killed, n=20)[-1] * 1000, 1_000, "ms after a kill"),
        Figure("late_max", killed[-1] * 1000, "ms after a kill"),
        at_most("late_max_frozen", frozen[-1], 15, "s after a freeze"),
        none_of("missing", stage.value(NOT_BEGUN), "jobs"),
        none_of("doubled", stage.value(STARTED_TWICE), "jobs"),
    ]


def _without_standby() -> None:
    replace(daemon, "STANDBY_S", 60.0)


def _without_deposing() -> None:
    replace(Leadership, "depose_frozen", lambda _self: None)


def _without_keepalive() -> None:
    # Each alone would hold: the server notices the silence, and so does the standby.
    replace(pg, "SERVER_KEEPALIVE", "")
    _without_deposing()


def _without_own_silence() -> None:
    # A client that waits for an answer as long as the system does by itself: a quarter of an hour.
    replace(pg, "KEEPALIVE", {})


PROOF = Proof(
    name="failover",
    run=run,
    sizes={"kills": Size(2, 50), "freezes": Size(1, 10), "vanishes": Size(1, 10), "due": Size(40, 100)},
    breaks={
        "standby": _without_standby,
        "deposing": _without_deposing,
        "keepalive": _without_keepalive,
        "own_silence": _without_own_silence,
    },
)
