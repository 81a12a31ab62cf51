"""A primary and its synchronous replica, and the change from one to the other."""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import quote

from django.conf import settings

from jobs.prove.stage.server import NAME
from scheduler_project.lib.embedded.cluster import PORT, ROLE
from scheduler_project.lib.embedded_pg import EmbeddedPostgres
from scheduler_project.lib.embedded_replica import Replica

_UNHEARD_S = 1.0


class Pair:
    """Two servers by one address, of which the one that takes writes is used.

    Raises:
        EmbeddedPostgresError: the primary can not be copied.
    """

    def __init__(self, primary: EmbeddedPostgres, name: str, synchronous: Mapping[str, str]) -> None:
        self.primary, self._synchronous, self._own = primary, synchronous, primary.settings
        self._names = {primary.name, name}
        self.replica = self._follow()

    @property
    def url(self) -> str:
        """The address of both."""
        folders = ",".join(quote(str(one.socket_dir), safe="") for one in (self.primary, self.replica))
        how = f"host={folders}&port={PORT},{PORT}&target_session_attrs=read-write"
        return f"postgresql://{ROLE}@/{NAME}?{how}"

    def fail_over(self) -> None:
        """The primary dies and the replica takes its place.

        Before that the replica is away for a moment: what was acknowledged without it would be lost, and that nothing
        is must not rest on its being quick.
        """
        self.replica.stop("fast")
        time.sleep(_UNHEARD_S)
        self.primary.kill()
        self.replica.ensure()
        self.replica.promote()

    def renew(self) -> None:
        """A new replica in the place of the primary that died."""
        self.primary.remove()
        self.primary = self.replica
        self.replica = self._follow()

    def _follow(self) -> Replica:
        [name] = self._names - {self.primary.name}
        self.primary.settings = self._own
        replica = Replica(settings.BASE_DIR, name, self.primary)
        replica.remove()  # what a run left behind that was killed
        replica.ensure()
        self.primary.settings = {**self._own, **self._synchronous}
        self.primary.restart()
        return replica
