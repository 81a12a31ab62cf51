"""Where the embedded PostgreSQL keeps its things, and the lock that lets one process at a time work on them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from scheduler_project.lib.embedded.errors import EmbeddedPostgresError

# The address of a Unix socket ends at 103 bytes on the strictest system; "/.s.PGSQL.5432" takes 14 of them.
SOCKET_FOLDER_LIMIT_BYTES = 88
_SYSTEM_FOLDER = Path("/var/lib/punctual")


def base_folder(project_root: Path) -> Path:
    """The folder of all clusters of one checkout.

    For root not in the checkout, since a root home is closed to the account that the server runs under.
    """
    if override := os.environ.get("APP_EMBEDDED_PG_HOME", "").strip():
        return Path(override).expanduser().absolute()
    if os.geteuid() == 0:
        return _SYSTEM_FOLDER / _short_hash(project_root.resolve())
    return project_root.resolve() / ".embedded-postgres"


def socket_folder(home: Path, uid: int) -> Path:
    """The folder of the socket: beside the data, or a short one when that address would be too long."""
    natural = home / "run"
    if len(os.fsencode(natural)) <= SOCKET_FOLDER_LIMIT_BYTES:
        return natural
    return Path("/tmp") / f"punctual-{uid}-{_short_hash(home)}"  # noqa: S108 - its owner is checked before each use


def make_passable(folder: Path) -> None:
    """Make ``folder`` and what is missing above it; every new one can be entered by any account."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        path.chmod(0o755)  # a strict umask of root's would shut the server's account out


@contextlib.contextmanager
def locked(path: Path, deadline: float) -> Iterator[None]:
    """Hold the lock file ``path``; the kernel frees it when we die.

    Raises:
        EmbeddedPostgresError: somebody else still holds it at ``deadline`` (of the monotonic clock).
    """
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    said = f"Another process has been starting or stopping the embedded PostgreSQL for long ({path})."
                    raise EmbeddedPostgresError(said) from None
                time.sleep(0.05)
        yield


def _short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:10]
