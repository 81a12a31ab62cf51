"""Limits of a queue and of its keys and its rate hold over all workers while they are killed, and are used in full."""

from __future__ import annotations

from datetime import datetime

from jobs.prove.stage.breaking import rewrite
from jobs.prove.stage.counts import COMPLETED
from jobs.prove.stage.proof import Proof, Size, all_of, at_most, none_of
from jobs.prove.stage.stage import Stage
from jobs.prove.stage.storm import storm
from queues.models import Queue
from scheduler_project.lib.figures import Figure

LIMIT, KEY_LIMIT, KEYS = 7, 2, 5
#: A second, below what a slow machine does without it.
RATE, WINDOW_S = 6, 3
#: A full bucket, what flows in meanwhile, and half a second's worth for a claim that dawdles behind its look at it.
MOST_STARTS = RATE * (1 + WINDOW_S + 0.5)
IN_FLIGHT = "select count(*) from jobs where status in ('claimed', 'running') and queue_id = %s"
ATTEMPTS = """
select coalesce(j.concurrency_key, ''), e.claimed_at, e.finished_at
  from job_executions e join jobs j on j.id = e.job_id where j.queue_id = %s
"""
IN_A_WINDOW = """
select max(n) from (select count(*) over (order by claimed_at range between current row
                                          and make_interval(secs => %s) following) as n
                      from job_executions e join jobs j on j.id = e.job_id where j.queue_id = %s) as windows
"""


def run(stage: Stage) -> list[Figure]:
    """Three queues at once, each with one kind of limit, under a storm."""
    limited = stage.queue("limited", max_concurrency=LIMIT)
    keyed = stage.queue("keyed", max_concurrency_per_key=KEY_LIMIT)
    rated = stage.queue("rated", rate_limit=RATE, rate_period_secs=1)
    stage.submit(limited, stage["jobs"], payload={"ms": 30})
    for key in range(KEYS):
        stage.submit(keyed, stage["jobs"] // KEYS, payload={"ms": 40}, concurrency_key=f"k{key}")
    n_rated = max(8 * RATE, stage["jobs"] // 10)
    stage.submit(rated, n_rated, payload={"ms": 1})
    stage.scheduler()
    most = 0
    with storm(stage, stage["workers"], seats=8, every_s=1.5, most=stage["kills"]) as weather:
        while stage.value("select count(*) from jobs where completed_at is null and queue_id = %s", limited.pk):
            most = max(most, stage.value(IN_FLIGHT, limited.pk))
    stage.until_all_ended()
    total = stage["jobs"] + stage["jobs"] // KEYS * KEYS + n_rated
    by_key = _overlaps(stage, keyed)
    return [
        Figure("kills", weather.kills),
        all_of("completed", stage.value(COMPLETED), total, "jobs"),
        at_most("sampled_in_flight", most, LIMIT, "of the queue"),
        at_most("recorded_in_flight", _overlaps(stage, limited)[""], LIMIT, "of the queue"),
        all_of("used", _overlaps(stage, limited)[""], LIMIT, "of the queue"),
        at_most("most_of_a_key", max(by_key.values()), KEY_LIMIT, "in flight"),
        all_of("least_of_a_key", min(by_key.values()), KEY_LIMIT, "in flight"),
        at_most("most_in_3_seconds", stage.value(IN_A_WINDOW, WINDOW_S, rated.pk), MOST_STARTS, "starts"),
        none_of("slots_leaked", stage.value("select count(*) from jobs where lease_token is not null"), "slots"),
    ]


def _overlaps(stage: Stage, queue: Queue) -> dict[str, int]:
    """For each key the most attempts in flight at one moment, from claim to end, as recorded."""
    moments: list[tuple[datetime, int, str]] = []
    for key, claimed_at, finished_at in stage.rows(ATTEMPTS, queue.pk):
        moments += [(claimed_at, 1, key), (finished_at, -1, key)]
    now: dict[str, int] = {}
    most: dict[str, int] = {}
    for _, step, key in sorted(moments):
        now[key] = now.get(key, 0) + step
        most[key] = max(most.get(key, 0), now[key])
    return most


def _without_count() -> None:
    rewrite("CLAIM", "busy.status in ('claimed', 'running')", "false")


def _without_keys() -> None:
    rewrite("CLAIM_GATED", "nth <= %(key_limit)s", "true")
    rewrite("CLAIM_GATED", "in_flight >= %(key_limit)s", "false")


def _without_rate() -> None:
    # Nothing is spent either: a queue whose bucket is empty would not be looked at.
    rewrite("OPEN_GATE", "case when queue.rate_limit is not null", "case when false")


PROOF = Proof(
    name="limits",
    run=run,
    sizes={"jobs": Size(300, 20_000), "kills": Size(5, 500), "workers": Size(3, 4)},
    breaks={"queue": _without_count, "keys": _without_keys, "rate": _without_rate},
)
