"""What a command writes: its head and tail are kept, its lines go to the job's log, all within bounds."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable, Collection

HEAD_BYTES = TAIL_BYTES = 32_768
MAX_LINE_BYTES = 2_000
#: Lines that go to the job's log: so many at once, then so many a second.
BURST_LINES, LINES_PER_S = 200, 20.0
MIN_SECRET_CHARS = 4
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)")
# Control characters, and those that turn the direction of the text around: a terminal or page would obey them.
_TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u2028\u2029"
_HARMLESS = {code: "\N{REPLACEMENT CHARACTER}" for code in range(0xA0) if unicodedata.category(chr(code)) == "Cc"}
_HARMLESS |= {ord(char): "\N{REPLACEMENT CHARACTER}" for char in _TURNS}
_HARMLESS[ord("\t")] = "\t"
_HARMLESS[ord("\n")] = "\n"


class Output:
    """Takes chunks of bytes; memory does not depend on how many.

    Args:
        log: takes a line for the job's log.
        secrets: values that are shown as ``***``.
    """

    def __init__(self, log: Callable[[str], None], secrets: Collection[str] = ()) -> None:
        self._log = log
        self._secrets = sorted((s for s in secrets if len(s) >= MIN_SECRET_CHARS), key=len, reverse=True)
        self._head, self._tail = bytearray(), bytearray()
        self.total_bytes = 0
        self._line = bytearray()
        self._is_long = False
        self._tokens, self._filled_at = float(BURST_LINES), time.monotonic()
        self._skipped = 0

    def feed(self, chunk: bytes) -> None:
        """Take what was written next."""
        self.total_bytes += len(chunk)
        self._keep(chunk)
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._hold(chunk[start:end])
            start = end + 1
            if not self._line_ends():
                # A flood: what the log does not take is counted, not looked at.
                last = chunk.rfind(b"\n", start)
                if last >= 0:
                    self._skipped += chunk.count(b"\n", start)
                    start = last + 1
        self._hold(chunk[start:])

    def finish(self) -> None:
        """It writes no more: the last line may have no end."""
        if self._line:
            self._tokens += 1
            self._line_ends()
        if self._skipped:
            self._tell_skipped()

    @property
    def cut_bytes(self) -> int:
        """How much of it is not kept."""
        return self.total_bytes - len(self._head) - len(self._tail)

    def kept(self) -> str:
        """Head and tail as harmless text of at most 65,536 characters and a remark between them."""
        if not self.cut_bytes:
            return self._text(bytes(self._head + self._tail))
        remark = f"\n[... {self.cut_bytes} bytes were cut here ...]\n"
        return self._text(bytes(self._head)) + remark + self._text(bytes(self._tail))

    def last_lines(self, count: int = 10, max_chars: int = 1_000) -> str:
        """The end of it, for an error message."""
        text = self._text(bytes((self._tail or self._head)[-4 * max_chars :])).rstrip()
        return "\n".join(text.splitlines()[-count:])[-max_chars:]

    def _keep(self, chunk: bytes) -> None:
        room = HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk[-TAIL_BYTES:]
        if len(self._tail) > TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]

    def _hold(self, piece: bytes) -> None:
        room = MAX_LINE_BYTES - len(self._line)
        self._line += piece[:room]
        self._is_long = self._is_long or len(piece) > room

    def _line_ends(self) -> bool:
        """Log the line if there is room for it; was there?"""
        now = time.monotonic()
        self._tokens = min(float(BURST_LINES), self._tokens + (now - self._filled_at) * LINES_PER_S)
        self._filled_at = now
        has_room = self._tokens >= 1
        if has_room:
            self._tokens -= 1
            if self._skipped:
                self._tell_skipped()
            self._log(self._text(bytes(self._line).rstrip(b"\r")) + (" [line cut]" if self._is_long else ""))
        else:
            self._skipped += 1
        self._line.clear()
        self._is_long = False
        return has_room

    def _tell_skipped(self) -> None:
        self._log(f"[{self._skipped} lines were left out here: too many at once]")
        self._skipped = 0

    def _text(self, data: bytes) -> str:
        text = data.decode("utf-8", "replace").replace("\r\n", "\n")
        text = _ESCAPES.sub("", text).translate(_HARMLESS)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text
