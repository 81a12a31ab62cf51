"""One project's long line of jobs does not make another wait; two share by the time they use; no seat is idle."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from jobs.lifecycle.claim import Want
from jobs.lifecycle.submit import NewJob, submit_job
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.proof import Proof, Size, all_of, at_most
from jobs.prove.stage.stage import Stage
from jobs.worker.roster import QueueState, Roster
from orgs.models import Organization, Project
from queues.models import Queue
from scheduler_project.lib.figures import Figure

MS = 50
FILL = """
insert into jobs (id, project_id, queue_id, job_type, payload, status, max_attempts_override)
select gen_random_uuid(), project_id, id, 'prove.effect', '{"ms": 50}', 'queued', 100
  from queues, generate_series(1, %s) where id = %s
"""
WAITS = """
select extract(epoch from min(e.at) - j.created_at)::float8 * 1000
  from jobs j join prove_effects e on e.job_id = j.id and e.kind = 'start' where j.queue_id = %s
 group by j.id, j.created_at
"""
BEGUN = "select count(distinct job_id) from prove_effects e join jobs j on j.id = e.job_id where j.queue_id = %s"
#: Of the large project in the second before the first job of the small one.
ALONE = """
select count(*) from prove_effects where kind = 'end' and at > clock_timestamp() - interval '2 seconds'
"""
#: Seconds in seats that each of the two has used since a moment, as the history tells them.
USED = """
select coalesce(sum(x.duration_ms) filter (where j.queue_id = %s), 0)::float8,
       coalesce(sum(x.duration_ms) filter (where j.queue_id = %s), 0)::float8
  from job_executions x join jobs j on j.id = x.job_id where x.finished_at > %s
"""
SEATS = 4
#: The other's jobs when both have a long line: a tenth of the time each, so turns by number would give it a tenth.
SHORT_MS = 5


def run(stage: Stage) -> list[Figure]:
    """A project with a long line, and another that submits a job now and then, of the same priority."""
    large = stage.queue("large", lease_s=60)
    organization = Organization.objects.create(name="Small", slug="small")
    project = Project.objects.create(organization=organization, name="Small", slug="small")
    small = stage.queue("small", lease_s=60, project=project)
    stage.say(f"one project submits {stage['jobs']:,} jobs of {MS} ms")
    stage.do(FILL, stage["jobs"], large.pk)
    stage.worker(SEATS)
    stage.until_value(BEGUN, large.pk, more_than=SEATS * 20, what="the long line is worked off")
    alone = stage.value(ALONE) / 2
    stage.say(f"the other submits {stage['single']} jobs, one after the other")
    for number in range(stage["single"]):
        submit_job(small, NewJob(job_type="prove.effect", payload={"ms": MS}))
        stage.until_value(BEGUN, small.pk, more_than=number, what="its job begins")
    waits = sorted(row[0] for row in stage.rows(WAITS, small.pk))
    share = _shared_time(stage, large, small)
    left = stage.value("select count(*) from jobs where queue_id = %s and status = 'queued'", large.pk)
    return [
        all_of("still_waiting", left, 1, "jobs of the long line"),
        at_most("wait_p50", statistics.median(waits), 8 * MS, "ms of the other's jobs"),
        at_most("wait_p95", statistics.quantiles(waits, n=20)[-1], 20 * MS, "ms of the other's jobs"),
        all_of("lesser_share", min(share, 1 - share), 0.3, "of the time used, when both have a long line"),
        Figure("alone_it_gets", alone / (SEATS * 1000 / MS), "of all seats"),
    ]


def _shared_time(stage: Stage, large: Queue, small: Queue) -> float:
    """Both have more work than there are seats; of their jobs' time, what part is the other's?"""
    stage.say(f"the other submits {stage['shared']:,} jobs of {SHORT_MS} ms at once")
    before = stage.value(BEGUN, small.pk)
    stage.submit(small, stage["shared"], payload={"ms": SHORT_MS})
    since = stage.value("select clock_timestamp()")
    stage.until_value(BEGUN, small.pk, more_than=before + stage["shared"] // 2, what="half of them have begun")
    [(of_large, of_small)] = stage.rows(USED, large.pk, small.pk, since)
    return float(of_small / (of_large + of_small))


def _first_come() -> None:
    # As one line: who has been there longest is served until there is nothing left.
    def keep_order(roster: Roster, band: Sequence[QueueState], seats: int, _used_s: Mapping[str, float]) -> list[Want]:
        first = min(band, key=list(roster._known.values()).index)
        return [Want(first.queue_id, seats)] if seats > 0 else []

    replace(Roster, "_spread", keep_order)


PROOF = Proof(
    name="fairness",
    run=run,
    sizes={"jobs": Size(20_000, 100_000), "single": Size(30, 500), "shared": Size(2_000, 20_000)},
    breaks={"turns": _first_come},
)
