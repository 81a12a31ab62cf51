"""What queues are called, for the labels of metrics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from django.db import DatabaseError, InterfaceError

from jobs.selectors.queue_stats import paths_of


class QueueNames:
    """Remembers paths; a queue is renamed so rarely that the old name may stand until the worker's next start."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}

    def learn(self, queue_ids: Iterable[str]) -> None:
        """Ask for the paths of these, with one query if one is new."""
        unknown = {id_ for id_ in queue_ids if id_ not in self._paths}
        if unknown:
            with contextlib.suppress(DatabaseError, InterfaceError):  # the next round trip will notice
                self._paths.update(paths_of(unknown))

    def of(self, queue_ids: Sequence[str]) -> list[str]:
        """The path of each; "unknown" if there was no answer: no claim is lost for a label."""
        return [self._paths.get(id_, "unknown") for id_ in queue_ids]
