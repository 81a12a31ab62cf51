"""start: claimed -> running, for prefetched jobs whose handler has begun; sent along with other writes."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.lease import Lease
from jobs.models import Job
from scheduler_project.lib.statements import Call, plain_array


def start_call(leases: Sequence[Lease]) -> Call:
    """Write that these handlers run. Fenced: nothing changes for a lease that was lost."""
    begun = sorted(leases)
    return Job.claims.start(
        ids=plain_array([lease.job_id for lease in begun]), tokens=plain_array([lease.token for lease in begun])
    )
