"""What a job waited for."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from jobs.models import JobDependency


def results_of_parents(job_id: UUID) -> dict[str, Any]:
    """The results of the jobs that a job waited for, by their ids."""
    rows = JobDependency.objects.filter(job_id=job_id).values_list("depends_on_job_id", "depends_on_job__result")
    return {str(id_): result for id_, result in rows}
