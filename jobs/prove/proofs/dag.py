"""Jobs that wait for others begin when those have ended and not before, and end as the graph says, under kills."""

from __future__ import annotations

from random import Random

from jobs.lifecycle import graph
from jobs.lifecycle.graph import After, Node, submit_graph
from jobs.lifecycle.placing import Placed
from jobs.new_job import NewJob
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.proof import Proof, Size, all_of, none_of
from jobs.prove.stage.stage import Stage
from jobs.prove.stage.storm import storm
from queues.models import Queue
from scheduler_project.lib.figures import Figure

#: A child whose handler began before the last attempt of a parent that it waits for had ended.
EARLY = """
select count(distinct edge.job_id) from job_dependencies edge
  join prove_effects child on child.job_id = edge.job_id and child.kind = 'start'
  join prove_effects parent on parent.job_id = edge.depends_on_job_id and parent.kind = 'end'
  join jobs on jobs.id = parent.job_id and jobs.fencing_number = parent.fencing_number
 where child.at < parent.at
"""
STARTED = "select count(*) from jobs where status = 'cancelled' and id in (select job_id from prove_effects)"


def run(stage: Stage) -> list[Figure]:
    """Random graphs, each job's fate drawn by lot, worked off in a storm; a simple model says how each must end."""
    queue = stage.queue()
    lot = Random(stage["seed"])  # noqa: S311 - the cases
    expected: dict[str, str] = {}
    edges = 0
    for _ in range(stage["graphs"]):
        ends, count = _submit_one(lot, queue, stage["largest"])
        expected |= ends
        edges += count
    stage.say(f"{stage['graphs']} graphs, {len(expected):,} jobs, {edges:,} edges")
    stage.scheduler()
    with storm(stage, stage["workers"], every_s=1.0, most=stage["kills"]) as weather:
        stage.until_all_ended()
    found = {str(id_): status for id_, status in stage.rows("select id, status from jobs")}
    return [
        all_of("jobs", len(found), len(expected)),
        none_of("ended_otherwise", sum(found[id_] != status for id_, status in expected.items()), "jobs"),
        none_of("began_early", stage.value(EARLY), "jobs"),
        none_of("began_although_cancelled", stage.value(STARTED), "jobs"),
        Figure("edges", edges),
        Figure("kills", weather.kills),
    ]


def _submit_one(lot: Random, queue: Queue, largest: int) -> tuple[dict[str, str], int]:
    """A graph; how each of its jobs must end, and how many edges it has."""
    size = lot.randint(2, largest)
    nodes = []
    fate = {}
    for number in range(size):
        parents = lot.sample(range(number), lot.randint(0, min(number, 3)))
        after = [After(f"n{parent}", lot.choice(["cancel", "run"])) for parent in parents]
        fate[f"n{number}"] = lot.random() < 0.8
        payload = {"ms": lot.randint(1, 40), "succeeds": fate[f"n{number}"]}
        job = NewJob(job_type="prove.fate", payload=payload, max_attempts=100)
        nodes.append(Node(f"n{number}", queue, job, after))
    ends: dict[str, str] = {}
    for node in nodes:
        doomed = any(ends[one.ref] != "completed" and one.on_failure == "cancel" for one in node.after)
        ends[node.ref] = "cancelled" if doomed else "completed" if fate[node.ref] else "failed"
    made = submit_graph(nodes)
    return {str(made[ref].id): status for ref, status in ends.items()}, sum(len(node.after) for node in nodes)


def _without_waiting() -> None:
    def not_blocked(
        id_: object, queue: Queue, job: NewJob, text: str, _is_blocked: object = False, is_parent: object = False
    ) -> Placed:
        return Placed(id_, queue, job, text, False, is_parent)  # type: ignore[arg-type]

    replace(graph, "Placed", not_blocked)


PROOF = Proof(
    name="dag",
    run=run,
    sizes={
        "graphs": Size(20, 500),
        "largest": Size(20, 60),
        "kills": Size(5, 500),
        "workers": Size(3, 4),
        "seed": Size(1, 2),
    },
    breaks={"waiting": _without_waiting},
)
