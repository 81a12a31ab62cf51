"""One data folder: made whole or not at all, and started."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from scheduler_project.lib.embedded.binaries import Binaries
from scheduler_project.lib.embedded.errors import EmbeddedPostgresError, cause_of, no_space
from scheduler_project.lib.embedded.owner import Owner
from scheduler_project.lib.embedded.postmaster import drop_stale_locks

SUPERUSER, ROLE = "postgres", "punctual"
PORT = 5432  # without a TCP listener it only names the socket file
_ROLE_SQL = f"""
create role {ROLE} login createdb;
grant pg_monitor, pg_signal_backend to {ROLE};
"""
_SETTINGS_FILE = "embedded.conf"
#: Only if the settings name an address to listen at, which must then be reached by nobody else.
_ACCESS_FILE = "embedded_hba.conf"
_ACCESS = f"local all all trust\nhost all {ROLE} samenet trust\n"
# Backends that outlived a killed server end within a moment; until then their memory bars the new one.
_PASSING = "still in use"
_LOG_LIMIT_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Cluster:
    """A data folder with the programs, the account and the settings to serve it."""

    binaries: Binaries
    owner: Owner
    data: Path
    socket_dir: Path
    log: Path
    settings: Mapping[str, str]

    def create(self) -> None:
        """Make the data folder and the plain role, under another name until both are complete."""
        fresh = self.data.with_name(f"{self.data.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        self.owner.own(fresh, 0o700)
        self._initdb(fresh)
        self._create_role(fresh)
        with (fresh / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"\ninclude_if_exists '{_SETTINGS_FILE}'\n")
        fresh.rename(self.data)

    def start(self, deadline: float) -> None:
        """Start the server and return when it is ready; ``deadline`` is of the monotonic clock."""
        self._write_settings()
        self._shorten_log()
        while True:
            drop_stale_locks(self.data, self.socket_dir / f".s.PGSQL.{PORT}.lock")
            already_said = self.log.stat().st_size if self.log.exists() else 0
            ended = self._pg_ctl_start(deadline)
            if ended.returncode == 0:
                return
            said = self._log_since(already_said) or ended.stderr
            if _PASSING not in said or time.monotonic() > deadline:
                raise self._failed("start", said)
            time.sleep(0.2)

    def _initdb(self, fresh: Path) -> None:
        unsynced = ["--no-sync"] if self.settings.get("fsync") == "off" else []
        access = ["--auth-local=trust", "--auth-host=reject"]  # the socket's folder is the guard
        ended = self._run("initdb", "-D", fresh, "-U", SUPERUSER, "-E", "UTF8", *self._locale(), *access, *unsynced)
        if ended.returncode:
            raise self._failed("create its data folder", ended.stderr or ended.stdout)

    def _create_role(self, fresh: Path) -> None:
        # In single-user mode, so that no server of a half-made cluster ever listens.
        fsync = self.settings.get("fsync", "on")
        ended = self._run("postgres", "--single", "-D", fresh, "-c", f"fsync={fsync}", "postgres", text_in=_ROLE_SQL)
        if ended.returncode or "ERROR:" in ended.stderr:  # a failed statement does not end this mode
            raise self._failed("create its role", ended.stderr)

    def _locale(self) -> list[str]:
        """Sorting by code point, letters of all scripts known, on every machine alike where the version can."""
        if self.binaries.major >= 17:
            return ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        return ["--locale=C.UTF-8" if sys.platform == "linux" else "--locale=C"]

    def _pg_ctl_start(self, deadline: float) -> CompletedProcess[str]:
        # pg_ctl gives the server a session of its own: Ctrl-C in our terminal does not reach it.
        remaining_s = str(max(1, int(deadline - time.monotonic())))
        return self._run("pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", remaining_s, "start")

    def _run(self, program: str, *arguments: str | Path, text_in: str | None = None) -> CompletedProcess[str]:
        return self.owner.run([self.binaries.folder / program, *arguments], text_in=text_in)

    def _write_settings(self) -> None:
        settings = {
            "listen_addresses": "",
            **self.settings,
            "port": str(PORT),
            "unix_socket_directories": '"{}"'.format(str(self.socket_dir).replace('"', '""')),
            "unix_socket_permissions": "0700",
        }
        if not self.binaries.has_statement_statistics:
            settings.pop("shared_preload_libraries", None)
        if settings["listen_addresses"]:
            self._write(_ACCESS_FILE, _ACCESS)
            settings["hba_file"] = str(self.data / _ACCESS_FILE)
        self._write(_SETTINGS_FILE, "".join(f"{name} = {quoted(value)}\n" for name, value in settings.items()))

    def _write(self, name: str, text: str) -> None:
        file = self.data / name
        file.write_text(text, encoding="utf-8")
        self.owner.own(file, 0o600)

    def _shorten_log(self) -> None:
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT_BYTES:
            self.log.replace(self.log.with_name(f"{self.log.name}.1"))

    def _log_since(self, offset: int) -> str:
        try:
            with self.log.open("rb") as file:
                file.seek(offset)
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _failed(self, doing: str, said: str) -> EmbeddedPostgresError:
        if "No space left" in said:
            return no_space(self.data.parent)
        return EmbeddedPostgresError(f"The embedded PostgreSQL could not {doing}: {cause_of(said)}. Log: {self.log}")


def quoted(value: str) -> str:
    """A value as PostgreSQL's configuration files want it."""
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
