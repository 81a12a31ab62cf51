"""extend: more time for leases, for those who still hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobs.models import Job
from scheduler_project.lib.sql import run_together
from scheduler_project.lib.statements import plain_array


class Held(NamedTuple):
    """A lease somebody says he holds, and for how long to extend it."""

    job_id: str
    token: str
    lease_s: int


def extend_leases(held: Sequence[Held]) -> dict[str, bool]:
    """Push the ends of these leases; by token: was the job asked to stop? Lost leases are missing.

    Source: sql/extend_leases.sql; ADR 0004.
    """
    if not held:
        return {}
    call = Job.claims.extend(
        ids=plain_array([lease.job_id for lease in held]),
        tokens=plain_array([lease.token for lease in held]),
        leases_s=plain_array([lease.lease_s for lease in held]),
    )
    [rows] = run_together([call])
    return {token: is_cancel_requested for token, is_cancel_requested, _ in rows}
