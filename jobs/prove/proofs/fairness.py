"""One project's long line of jobs does not make another project wait, and what is idle is used."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from jobs.lifecycle.claim import Want
from jobs.lifecycle.submit import NewJob, submit_job
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.proof import Proof, Size, all_of, at_most
from jobs.prove.stage.stage import Stage
from jobs.worker.roster import QueueState, Roster
from orgs.models import Organization, Project
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
SEATS = 4


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
    left = stage.value("select count(*) from jobs where queue_id = %s and status = 'queued'", large.pk)
    return [
        all_of("still_waiting", left, 1, "jobs of the long line"),
        at_most("wait_p50", statistics.median(waits), 8 * MS, "ms of the other's jobs"),
        at_most("wait_p95", statistics.quantiles(waits, n=20)[-1], 20 * MS, "ms of the other's jobs"),
        Figure("alone_it_gets", alone / (SEATS * 1000 / MS), "of all seats"),
    ]


def _first_come() -> None:
    # As one line: who has been there longest is served until there is nothing left.
    def spread(_roster: Roster, band: Sequence[QueueState], seats: int) -> list[Want]:
        return [Want(band[0].queue_id, seats)] if seats > 0 else []

    def keep_order(roster: Roster, band: list[QueueState], seats: int) -> list[Want]:
        order = list(roster._known.values())
        return spread(roster, sorted(band, key=order.index), seats)

    replace(Roster, "_spread", keep_order)


PROOF = Proof(
    name="fairness",
    run=run,
    sizes={"jobs": Size(20_000, 100_000), "single": Size(30, 500)},
    breaks={"turns": _first_come},
)
