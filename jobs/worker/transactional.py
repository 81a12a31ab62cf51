"""A transactional handler: what it writes and the end of its attempt are one transaction, fenced by the lease."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import transaction

from jobs.decisions import Cancelled, Succeeded, Verdict
from jobs.handlers.base import JobContext
from jobs.lease import Ending, Lease, Written
from jobs.lifecycle.complete import complete
from jobs.lifecycle.exchange import LogLine
from jobs.states import JobStatus
from jobs.worker.outbox import Outbox


class _Undone(Exception):
    """Roll back; the attempt ends with this verdict, None for a lost lease."""

    def __init__(self, verdict: Verdict | None) -> None:
        super().__init__()
        self.verdict = verdict


def run_in_transaction(
    run: Callable[[], Verdict | None], ctx: JobContext, lease: Lease, worker_id: str, outbox: Outbox
) -> Verdict | Written | None:
    """Run a handler and complete its job in one transaction.

    Only what succeeds is committed: after any other verdict, a cancel that was answered meanwhile, or a lost lease, the
    handler has written nothing.
    """
    lines: list[LogLine] = []
    is_written = False
    try:
        with transaction.atomic():
            verdict = run()
            if not isinstance(verdict, Succeeded):
                raise _Undone(verdict)
            ran_ms = round((time.monotonic() - ctx.started) * 1000, 3)
            lines = outbox.take(lease.token)
            settled = complete(Ending.of(lease, verdict, worker_id, ran_ms), lines)
            if settled.lost:
                raise _Undone(None)
            status = settled.statuses[lease.job_id]
            if status != JobStatus.COMPLETED:
                raise _Undone(Cancelled("cancelled on request; what the handler wrote was rolled back"))
        is_written = True
    except _Undone as undone:
        return undone.verdict
    finally:
        if not is_written:
            outbox.put_back(lines, [])
    return Written(verdict, status, settled.open_circuits)
