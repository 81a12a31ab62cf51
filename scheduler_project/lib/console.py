"""Lines of several programs on one terminal: each with its program's name before it, in its own colour."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Mapping, Sequence
from typing import TextIO

from scheduler_project.lib import logs

log = logs.get(__name__)

_COLOURS = ("36", "33", "35", "32", "34", "96", "93", "95", "92", "94")


def has_colour(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Colour on a terminal, unless NO_COLOR; elsewhere only with FORCE_COLOR."""
    if environment.get("NO_COLOR"):
        return False
    return bool(environment.get("FORCE_COLOR")) or (stream.isatty() and environment.get("TERM") != "dumb")


class Console:
    """Writes prefixed lines, and knows when nobody can read them any more.

    Args:
        stream: where the lines go.
        names: of all programs, so that their prefixes are of one width.
    """

    def __init__(self, stream: TextIO, names: Sequence[str]) -> None:
        self.stream = stream
        self._has_failed = False
        self._is_coloured = has_colour(stream)
        self._width = max(map(len, names), default=0)
        self._colours = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(names)}

    @property
    def is_broken(self) -> bool:
        """Has the terminal been closed, or the reader of the pipe gone?"""
        return self._has_failed or self._has_hung_up()

    def line(self, name: str, text: str) -> None:
        """Write one line of the program ``name``."""
        prefix = f"{name:<{self._width}} |"
        if self._is_coloured:
            # Reset first: a program that was cut off in mid-colour must not dye the others.
            prefix = f"\033[0m\033[{self._colours.get(name, '1')}m{prefix}\033[0m"
        self.write(f"{prefix} {text}\n")

    def write(self, text: str) -> None:
        """Write the text as it is, with marks for letters that the stream can not show."""
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        shown = text.encode(encoding, "backslashreplace").decode(encoding)
        try:
            self.stream.write(shown)
            self.stream.flush()
        except OSError:  # the terminal was closed, or the pipe's reader has gone
            self._has_failed = True
            self._give_up_stream()

    def _has_hung_up(self) -> bool:
        """Ask without writing: a quiet program would not notice otherwise, nor does SIGHUP pass through make."""
        try:
            poll = select.poll()
            poll.register(self.stream.fileno(), 0)
        except (OSError, ValueError):  # no file behind it
            return False
        return any(happened & (select.POLLHUP | select.POLLERR) for _, happened in poll.poll(0))

    def _give_up_stream(self) -> None:
        """Point the stream at nothing: what it still buffers would fail again when the interpreter ends."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


class Relay(Console):
    """Passes on the lines of programs as they are, for whoever reads them by machine; ours is an event like theirs."""

    def line(self, name: str, text: str) -> None:
        """Write one line of the program ``name``."""
        if name in self._colours:
            self.write(f"{text}\n")
        else:
            log.info("supervisor", message=text)
