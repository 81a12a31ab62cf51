"""A batch's callbacks come once, when it ends, whoever looks at it at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.models import JobBatch
from jobs.new_job import NewJob
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.proof import Proof, Size, all_of, none_of
from jobs.prove.stage.stage import Stage
from jobs.prove.stage.storm import storm
from jobs.services import batches
from jobs.services.batches import add_jobs, close_batch, create_batch, fold_batches
from scheduler_project.lib.dbthreads import drop_connection
from scheduler_project.lib.figures import Figure

CALLBACKS = """
select payload->'batch'->>'id', payload->'batch'->>'event', (payload->'batch'->>'total')::int, count(*) from jobs
 where payload ? 'batch' group by 1, 2, 3
"""
EARLY = """
select count(*) from prove_effects e join jobs callback on callback.id = e.job_id and callback.payload ? 'batch'
 where e.kind = 'start' and callback.payload->'batch'->>'event' in ('on_end', 'on_success')
   and exists (select from jobs j where j.batch_id = (callback.payload->'batch'->>'id')::uuid
                  and (j.completed_at is null or j.completed_at > e.at))
"""


def run(stage: Stage) -> list[Figure]:
    """Batches, some of which fail, worked off in a storm; a leader and several others fold them at once."""
    queue = stage.queue()
    failing = set()
    callback = {"queue_id": str(queue.pk), "job_type": "prove.effect"}
    made = []
    for number in range(stage["batches"]):
        wanted = dict.fromkeys(batches.CALLBACKS, callback)
        batch = create_batch(queue.project_id, f"b{number}", callbacks=wanted)
        fates = [True] * stage["jobs"]
        if number % 3 == 0:
            fates[0] = False
            failing.add(str(batch.pk))
        add_jobs(batch.pk, queue, [
            NewJob(job_type="prove.fate", payload={"ms": 5, "succeeds": fate}, max_attempts=100) for fate in fates
        ])  # fmt: skip
        close_batch(batch.pk)
        made.append(str(batch.pk))
    expected = {(id_, "on_end") for id_ in made}
    expected |= {(id_, "on_failure" if id_ in failing else "on_success") for id_ in made}
    stage.scheduler()
    with _folding(stage["folders"]), storm(stage, stage["workers"], every_s=1.5, most=stage["kills"]):
        stage.until_all_ended()
        stage.until(lambda: not JobBatch.objects.filter(ended_at=None).exists(), 30, "all batches end")
        stage.until_all_ended()
    return _figures(stage, expected)


def _figures(stage: Stage, expected: set[tuple[str, str]]) -> list[Figure]:
    rows = stage.rows(CALLBACKS)
    found = {(id_, event) for id_, event, _, _ in rows}
    miscounted = sum(event == "on_end" and total != stage["jobs"] for _, event, total, _ in rows)
    return [
        all_of("callbacks", len(found & expected), len(expected)),
        none_of("missing", len(expected - found), "callbacks"),
        none_of("not_due", len(found - expected), "callbacks"),
        none_of("twice", sum(count > 1 for *_, count in rows), "callbacks"),
        none_of("before_the_end", stage.value(EARLY), "callbacks"),
        none_of("miscounted", miscounted, "batches"),
    ]


@contextmanager
def _folding(count: int) -> Iterator[None]:
    """Others that fold at the same time as the leader: what several leaders would do."""
    over = threading.Event()

    def fold() -> None:
        while not over.wait(0.01):
            fold_batches()
        drop_connection()

    threads = [threading.Thread(target=fold, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _without_guards() -> None:
    # Each alone would hold: the batch's row is locked while it is folded, and a callback's key makes it one job.
    replace(JobBatch.objects, "select_for_update", lambda **_: JobBatch.objects.all())
    replace(batches, "NewJob", lambda idempotency_key=None, **fields: NewJob(**fields))


PROOF = Proof(
    name="batch",
    run=run,
    sizes={
        "batches": Size(12, 200),
        "jobs": Size(30, 500),
        "folders": Size(3, 4),
        "kills": Size(5, 500),
        "workers": Size(2, 4),
    },
    breaks={"lock_and_key": _without_guards},
)
