"""When a batch of endings is refused as a whole: write them one by one, so that one bad row costs only itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError

from jobs.decisions import Failed
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from scheduler_project.lib import logs

log = logs.get(__name__)


def is_its_own_fault(error: Exception) -> bool:
    """Was what we sent refused, and not the database away, read-only or of another version?"""
    return isinstance(error, DataError | IntegrityError) or not isinstance(error, DatabaseError | InterfaceError)


def settle_one_by_one(endings: Sequence[Ending]) -> Iterator[Ending]:
    """Settle each alone, and yield it when that is done.

    One that is refused, by the database or by our own code, is settled as failed with the reason, or else left to
    its lease.

    Raises:
        DatabaseError, InterfaceError: the database is away, read-only or of another version; what was not yielded is
            not written.
    """
    for ending in endings:
        try:
            settle([ending])
        except Exception as error:  # boundary: an ending that can not be written must not keep the others
            if not is_its_own_fault(error):
                raise
            log.exception("ending_refused", job_id=ending.job_id, error=str(error))
            _settle_as_failed(ending, error)
        yield ending


def _settle_as_failed(ending: Ending, refusal: Exception) -> None:
    reason, *_ = str(refusal).splitlines() or [type(refusal).__name__]
    try:
        settle([ending._replace(verdict=Failed(f"The attempt's outcome could not be stored: {reason}"))])
    except Exception as error:  # boundary: as above
        if not is_its_own_fault(error):
            raise
        log.exception("ending_left_to_its_lease", job_id=ending.job_id, error=str(error))
