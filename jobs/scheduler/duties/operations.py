"""Operations go on, step by step, for a short while in each round: other duties have their turn in between."""

from __future__ import annotations

import time
from uuid import UUID

from django.db import DatabaseError

from jobs.scheduler.duties.base import SET_ASIDE_S, Duty
from jobs.services.operation_steps import run_step, unended_ids
from scheduler_project.lib import logs
from scheduler_project.lib.dbthreads import session

log = logs.get(__name__)

ROUND_S = 0.2


def duty(every_s: float) -> Duty:
    """One step of each operation in turn until the round's time is up; the next round when a pace lets one go on."""
    aside: dict[UUID, float] = {}

    def run() -> float | None:
        until = time.monotonic() + ROUND_S
        soonest_s = every_s
        waiting = [id_ for id_ in unended_ids() if aside.get(id_, 0.0) <= time.monotonic()]
        while waiting and time.monotonic() < until:
            id_ = waiting.pop(0)
            wait_s = _step_safely(id_, aside)
            if wait_s == 0:
                waiting.append(id_)
            elif wait_s is not None:
                soonest_s = min(soonest_s, wait_s)
        return 0.0 if waiting else soonest_s

    return Duty("operations", every_s, run)


def _step_safely(operation_id: UUID, aside: dict[UUID, float]) -> float | None:
    """One step; an operation that the database refuses is left alone for a while."""
    try:
        return run_step(operation_id)
    except DatabaseError as error:
        if session() is None:
            raise
        aside[operation_id] = time.monotonic() + SET_ASIDE_S
        log.error("operation_set_aside", operation_id=str(operation_id), error=str(error).splitlines()[0])
        return None
