"""A worker freezes in the middle of its work, for longer than its leases hold, while another takes its jobs over."""

from __future__ import annotations

from jobs.prove.stage.counts import COMPLETED
from jobs.prove.stage.process import Process
from jobs.prove.stage.stage import Stage
from queues.models import Queue

RUNNING = "select count(*) from jobs where status = 'running'"
#: Long enough to be frozen in, on a slow machine too.
MS = 1_500


def freeze_once(stage: Stage, queue: Queue, job_type: str, sleeper: Process, helper: Process, seats: int) -> None:
    """The sleeper takes so many jobs and freezes over them; the helper does them; the sleeper wakes up and goes on."""
    done = stage.value(COMPLETED) + seats
    helper.freeze()
    stage.submit(queue, seats, job_type, payload={"ms": MS})
    stage.until(lambda: stage.value(RUNNING) == seats, 30, "the jobs begin")
    sleeper.freeze()
    helper.resume()
    stage.until(lambda: stage.value(COMPLETED) == done, 40, "another worker does the jobs of the frozen one")
    sleeper.resume()
