"""Texts of strangers, made harmless: what can not be seen, or turns what follows around, is spelled out."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
#: Control characters, surrogates, and marks that change the direction of writing or are not seen.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufff9-\ufffb]"
)
ELLIPSIS = "…"


def harmless(value: object, most_chars: int = 10_000) -> str:
    """The text with its invisible characters as visible escapes, colours of terminals dropped, cut at a length."""
    text = str(value)
    cut = text[: most_chars + 1]
    shown = _HIDDEN.sub(_escape, _ANSI.sub("", cut.replace("\r\n", "\n")))
    return shown[:most_chars] + ELLIPSIS if len(text) > most_chars or len(shown) > most_chars else shown


@lru_cache(maxsize=8_192)  # a page that is asked for again, or a region, groups the same errors again
def shape_of(error: str) -> str:
    """The first line of an error with its numbers, ids and quoted parts masked: equal for equal causes."""
    line = next((part for part in error.strip().splitlines() if part.strip()), "")[:300]
    line = re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b0x[0-9a-f]+\b|\b[0-9a-f]{16,}\b", "…", line, flags=re.IGNORECASE)
    line = re.sub(r"'[^']{1,200}'|\"[^\"]{1,200}\"", "'…'", line)
    return unicodedata.normalize("NFC", re.sub(r"\d+(?:\.\d+)?", "#", line))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
