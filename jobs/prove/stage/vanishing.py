"""The host of the leading scheduler vanishes from the network: nobody is told, neither the database nor the host."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from jobs.prove.stage.counts import STARTED_TWICE
from jobs.prove.stage.leading import LEADER, NOT_BEGUN, lateness, leader_of, let_pass, submit_due, until_begun
from jobs.prove.stage.proof import NotPossible, NotReached, all_of, at_most, none_of
from jobs.prove.stage.server import NAME, own_server
from jobs.prove.stage.stage import Stage
from queues.models import Queue
from scheduler_project.lib.embedded.cluster import PORT, ROLE
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.networks import Host, NotAllowed

HERE, THERE = "198.18.0.1", "198.18.0.2"
MARK = 3
#: A peer may be silent for 9 s; the rest is for a busy machine.
BAR_S = 15.0
TERM = "select max(id) from leader_terms where pid = %s"
#: A new session from there: the one that led is gone. Its listener's may just live on.
BACK = """
select count(*) from pg_stat_activity
 where datname = current_database() and client_addr = %s::inet and backend_start > %s
"""
ACTED = "select count(*) from leader_terms where pid = %s and id > %s"


@dataclass(frozen=True, slots=True)
class _Seen:
    taken_over_s: float
    noticed_s: float
    acted: int
    is_back: bool


def vanish(stage: Stage) -> list[Figure]:
    """Pull the cable of the leader's host while jobs come due, and plug it in again; what is not allowed is said.

    The host is a network namespace; its way to a PostgreSQL of the proof's own is TCP over a cable of theirs.
    """
    try:
        with contextlib.ExitStack() as hosts:
            here, there = hosts.enter_context(Host()), hosts.enter_context(Host())
            here.connect(there, HERE, THERE)
            with own_server(stage, "prove-failover", {"listen_addresses": HERE}, here):
                return _figures(stage, there)
    except (NotAllowed, NotPossible) as error:
        stage.not_staged(f"a host that vanishes: {error}")
        return []


def _figures(stage: Stage, there: Host) -> list[Figure]:
    queue = stage.queue(lease_s=60)
    stage.worker(10)
    stage.until_ready(1)
    seen = []
    for number in range(1, stage["vanishes"] + 1):
        stage.say(f"vanishing host {number} of {stage['vanishes']}")
        seen.append(_round(stage, queue, there))
    return [
        at_most("taken_over", max(one.taken_over_s for one in seen), BAR_S, "s after a host vanished"),
        at_most("noticed_by_itself", max(one.noticed_s for one in seen), BAR_S, "s, by the host that vanished"),
        all_of("came_back", sum(one.is_back for one in seen), len(seen), "hosts, as standbys"),
        none_of("acted_after_return", sum(one.acted for one in seen), "hosts"),
        at_most("late_max_vanished", lateness(stage, MARK)[-1], BAR_S, "s after a host vanished"),
        none_of("missing_vanished", stage.value(NOT_BEGUN), "jobs"),
        none_of("doubled_vanished", stage.value(STARTED_TWICE), "jobs"),
    ]


def _round(stage: Stage, queue: Queue, there: Host) -> _Seen:
    leader = stage.start("runscheduler", host=there, url=f"postgresql://{ROLE}@{HERE}:{PORT}/{NAME}")
    stage.until(lambda: stage.value(LEADER) == leader.pid, 30, "the scheduler on the other host leads")
    standby = stage.scheduler()
    leader_of(stage, [leader, standby])
    term = stage.value(TERM, leader.pid)
    submit_due(stage, queue, MARK)
    let_pass(stage, 0.5)
    there.pull()
    pulled = time.monotonic()
    stage.until(lambda: stage.value(LEADER) == standby.pid, 30, "another leads after the host vanished")
    taken_over_s = time.monotonic() - pulled
    until_begun(stage)
    with contextlib.suppress(NotReached):
        stage.until(lambda: leader.events("leadership_lost"), BAR_S + 5 - (time.monotonic() - pulled), "")
    noticed_s = time.monotonic() - pulled
    at = stage.value("select clock_timestamp()")
    submit_due(stage, queue, MARK)
    there.plug()
    is_back = False
    with contextlib.suppress(NotReached):
        is_back = stage.until(lambda: stage.value(BACK, THERE, at) > 0, 15, "")
    until_begun(stage)
    acted = stage.value(ACTED, leader.pid, term) + (stage.value(LEADER) != standby.pid)
    leader.kill()
    standby.kill()
    return _Seen(taken_over_s, noticed_s, int(acted > 0), is_back)
