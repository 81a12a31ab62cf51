"""The account that the server runs under: PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler_project.lib.embedded.errors import EmbeddedPostgresError

# Nothing of the user's environment: a PGDATA, LD_PRELOAD or odd locale of his would change what the programs do.
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class Owner:
    """An account by its numbers, which is all there is for a container's made-up user."""

    uid: int
    gid: int

    @property
    def is_other(self) -> bool:
        """Is it another account than our own?"""
        return self.uid != os.geteuid()

    def run(self, command: Sequence[str | Path], text_in: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program under this account; the caller judges its return code."""
        # The group goes with the user: a server left with root's group could read what root's group can.
        account: dict[str, Any] = {"user": self.uid, "group": self.gid, "extra_groups": []} if self.is_other else {}
        source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if text_in is None else {"input": text_in}
        return subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",  # the account may be barred from our own working folder
            env=_ENVIRONMENT,
            **source,
            **account,
        )

    def can(self, letter: str, path: Path) -> bool:
        """May the account read (``r``), write (``w``) or enter and run (``x``) ``path``, all folders above included?"""
        return self.run(["/bin/sh", "-c", f'test -{letter} "$1"', "sh", path]).returncode == 0

    def own(self, path: Path, mode: int) -> None:
        """Give ``path`` to the account with exactly these permissions, whatever the umask says."""
        if self.is_other:
            os.chown(path, self.uid, self.gid)
        path.chmod(mode)

    def owns(self, path: Path) -> bool:
        """Is ``path`` a real folder of this account? A link planted by somebody else is not."""
        try:
            found = path.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == self.uid


def pick_owner(home: Path) -> Owner:
    """Ourselves; for root the owner of ``home`` if it was used before, else a service account."""
    if os.geteuid() != 0:
        return Owner(os.geteuid(), os.getegid())
    if home.exists() and (found := home.stat()).st_uid != 0:
        # An account named postgres may have come later: the data stays with the account that made it.
        return Owner(found.st_uid, found.st_gid)
    for name in filter(None, (os.environ.get("APP_EMBEDDED_PG_USER"), "postgres", "nobody")):
        if account := _find_account(name):
            return account
    raise EmbeddedPostgresError(
        "PostgreSQL refuses to run as root and there is no account 'postgres' or 'nobody' to run it under. "
        "Name one in APP_EMBEDDED_PG_USER, or run Punctual as a normal user."
    )


def _find_account(name: str) -> Owner | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Owner(entry.pw_uid, entry.pw_gid) if entry.pw_uid else None
