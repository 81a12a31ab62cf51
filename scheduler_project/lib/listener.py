"""Listens to one channel on a connection of its own, which runs nothing else, and passes on what it hears."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
from psycopg import sql

from scheduler_project.lib import logs, pg

log = logs.get(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0


class Listener:
    """A thread that calls ``on_hint(kind, subject)`` for each message "kind subject", and with ("", "") after a gap.

    Args:
        channel: an identifier, as it stands in LISTEN.
        name: shown in pg_stat_activity.
    """

    def __init__(self, channel: str, name: str, on_hint: Callable[[str, str], None]) -> None:
        self._channel, self._name, self._on_hint = channel, name, on_hint
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="listener", daemon=True)
        self.is_listening = False

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Stop within half a second."""
        self._stop.set()

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stop.is_set():
            try:
                with pg.connect_direct(self._name) as connection:
                    connection.execute(sql.SQL("listen {}").format(sql.Identifier(self._channel)))
                    self.is_listening, pause_s = True, FIRST_PAUSE_S
                    self._on_hint("", "")  # whatever was sent before is lost
                    self._hear(connection)
            except (psycopg.Error, OSError) as error:
                log.warning("listener_lost", error=str(error), retry_in_s=pause_s)
                self.is_listening = False
                self._stop.wait(pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _hear(self, connection: psycopg.Connection[object]) -> None:
        while not self._stop.is_set():
            for note in connection.notifies(timeout=0.5):
                kind, _, subject = note.payload.partition(" ")
                self._on_hint(kind, subject)
