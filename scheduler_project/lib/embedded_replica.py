"""A replica of an embedded PostgreSQL: follows it, and takes its place when it is promoted."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg

from scheduler_project.lib.embedded.binaries import find_binaries
from scheduler_project.lib.embedded.cluster import PORT, SUPERUSER
from scheduler_project.lib.embedded.errors import EmbeddedPostgresError, cause_of
from scheduler_project.lib.embedded_pg import EmbeddedPostgres

_COPY = "pg_basebackup"
_PROMOTE_S = 30


class Replica(EmbeddedPostgres):
    """Made anew from its primary, which must run, when it is first started.

    Args:
        project_root: the checkout the data belongs to.
        name: of the replica.
        primary: whom it follows.
    """

    def __init__(self, project_root: Path, name: str, primary: EmbeddedPostgres) -> None:
        # Back soon when its primary is: whoever writes there waits for it.
        super().__init__(project_root, name, {**primary.settings, "wal_retrieve_retry_interval": "200ms"})
        self._primary = primary

    def promote(self) -> None:
        """Follow nobody any more; returns when it takes writes.

        Raises:
            EmbeddedPostgresError: it did not become a primary.
        """
        with psycopg.connect(self.url("postgres", SUPERUSER), autocommit=True) as session:
            done = session.execute("select pg_promote(wait => true, wait_seconds => %s)", [_PROMOTE_S]).fetchone()
        if done != (True,):
            raise EmbeddedPostgresError(f"The replica was not promoted within {_PROMOTE_S} s. Log: {self.log}")

    def _start(self, deadline: float) -> None:
        binaries = find_binaries(self.owner, self.base)
        data = self.home / f"data-{binaries.major}"
        if not (data / "PG_VERSION").exists():
            self._copy(binaries.folder / _COPY, data)
        super()._start(deadline)

    def _copy(self, program: Path, data: Path) -> None:
        if not program.exists():
            raise EmbeddedPostgresError(f"{program} is not there.")
        fresh = data.with_name(f"{data.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        whom: list[str | Path] = ["-h", self._primary.socket_dir, "-p", str(PORT), "-U", SUPERUSER]
        how = ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]
        ended = self.owner.run([program, "-D", fresh, *whom, *how])
        if ended.returncode:
            raise EmbeddedPostgresError(f"The primary could not be copied: {cause_of(ended.stderr)}.")
        fresh.rename(data)
