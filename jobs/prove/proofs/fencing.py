"""A worker freezes past its leases and wakes up: what it does then changes nothing, also in a sink that looks."""

from __future__ import annotations

from jobs.prove.stage import work
from jobs.prove.stage.breaking import replace, rewrite
from jobs.prove.stage.counts import COMPLETED, UNTRUE_HISTORIES
from jobs.prove.stage.freezing import freeze_once
from jobs.prove.stage.proof import Proof, Size, all_of, none_of
from jobs.prove.stage.stage import Stage
from jobs.worker.runtime import Runtime
from scheduler_project.lib.figures import Figure

LEASE_S = 2
SEATS = 4
#: The result is the pid that the handler ran in: that of the last claim, or a ghost's.
OF_GHOSTS = """
select count(*) from jobs j
 where not exists (select from prove_effects e where e.job_id = j.id and e.fencing_number = j.fencing_number
                      and e.kind = 'end' and to_jsonb(e.pid) = j.result)
"""
GHOSTS = """
select count(*) from prove_effects late
 where kind = 'end' and exists (select from jobs j where j.id = late.job_id and j.fencing_number > late.fencing_number)
"""


def run(stage: Stage) -> list[Figure]:
    """Freeze a worker in mid-work for longer than its leases hold, while another takes its jobs; then resume it."""
    queue = stage.queue(lease_s=LEASE_S)
    stage.scheduler()
    sleeper, helper = stage.worker(SEATS), stage.worker(SEATS)
    stage.until_ready(2)
    for number in range(1, stage["rounds"] + 1):
        stage.say(f"round {number} of {stage['rounds']}: frozen in mid-work")
        freeze_once(stage, queue, "prove.sink", sleeper, helper, SEATS)
        stage.until_value(GHOSTS, more_than=number * SEATS - 1, what="the frozen handlers go on")
    ghosts = stage.value(GHOSTS)
    stage.until_count(lambda: len(sleeper.events("late_result_refused")), ghosts, 5)
    return [
        all_of("ghosts", ghosts, stage["rounds"] * SEATS, "late effects"),
        all_of("completed", stage.value(COMPLETED), stage["rounds"] * SEATS, "jobs"),
        none_of("results_of_ghosts", stage.value(OF_GHOSTS), "jobs"),
        none_of("untrue_histories", stage.value(UNTRUE_HISTORIES), "jobs"),
        all_of("refused_and_counted", len(sleeper.events("late_result_refused")), ghosts, "late results"),
        none_of("overwritten_in_sink", stage.value("select count(*) from prove_sink where went_back"), "rows"),
    ]


def _without_tokens() -> None:
    # Two guards would each be enough: the token, and the history's key, which is the token. And the worker that
    # learns that its lease is gone drops the result by itself.
    for name in ("SETTLE", "SETTLE_WELL"):
        rewrite(name, "and job.lease_token = verdict.token", "")
        rewrite(name, "where outcome is not null\n)", "where outcome is not null\n    on conflict (id) do nothing\n)")
    replace(Runtime, "_lose", lambda _self, _tokens: None)


def _without_looking() -> None:
    replace(work, "SINK", work.SINK.replace(work.LOOKS, ""))


PROOF = Proof(
    name="fencing",
    run=run,
    sizes={"rounds": Size(2, 50)},
    breaks={"tokens": _without_tokens, "sink": _without_looking},
)
