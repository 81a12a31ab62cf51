"""When a batch of endings is refused as a whole: write them one by one, so that one bad row costs only itself."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import DatabaseError, InterfaceError, OperationalError

from jobs.decisions import Failed
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from scheduler_project.lib import logs

log = logs.get(__name__)


def settle_one_by_one(endings: Sequence[Ending]) -> None:
    """Settle each alone; one that is refused is settled as failed with the reason, or else left to its lease."""
    for ending in endings:
        try:
            settle([ending])
        except (OperationalError, InterfaceError):
            raise
        except DatabaseError as error:
            log.error("ending_refused", job_id=ending.job_id, error=str(error))
            _settle_as_failed(ending, error)


def _settle_as_failed(ending: Ending, refusal: DatabaseError) -> None:
    text = f"The attempt's outcome could not be stored: {str(refusal).splitlines()[0]}"
    try:
        settle([ending._replace(verdict=Failed(text))])
    except DatabaseError as error:
        log.error("ending_left_to_its_lease", job_id=ending.job_id, error=str(error))
