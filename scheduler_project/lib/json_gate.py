"""The one gate for JSON that goes into the database: what passes can be stored and read again, exactly."""

from __future__ import annotations

import json
import re
from typing import Any

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64

_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
# An escaped U+0000; with an odd number of backslashes before the u, else it is a backslash and plain text.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class Unstorable(ValueError):
    """The value can not be stored as JSON; the message says why and what is allowed."""


def encode(value: Any, *, max_bytes: int = MAX_BYTES) -> str:
    """JSON text of ``value``, fit for a jsonb column.

    Raises:
        Unstorable: not JSON, too large, too deep, not a finite number, U+0000 or half a surrogate pair in a text.
    """
    try:
        text = _ENCODER.encode(value)
        size = len(text) if text.isascii() else len(text.encode())
    except RecursionError:
        raise Unstorable(f"is nested deeper than {MAX_DEPTH} levels") from None
    except UnicodeEncodeError:
        raise Unstorable("holds half of a surrogate pair, which is not a character") from None
    except ValueError as error:
        reason = "holds NaN or Infinity, which JSON has no number for" if "JSON compliant" in str(error) else str(error)
        raise Unstorable(reason) from None
    except TypeError as error:
        raise Unstorable(f"is not JSON: {error}") from None
    if size > max_bytes:
        raise Unstorable(f"takes {size:,} bytes as JSON; at most {max_bytes:,} are allowed")
    if "\\u0000" in text and _NUL.search(text):
        raise Unstorable("holds the character U+0000, which PostgreSQL can not store")
    if (text.count("[") + text.count("{")) > MAX_DEPTH and depth(value) > MAX_DEPTH:
        raise Unstorable(f"is nested deeper than {MAX_DEPTH} levels")
    return text


def depth(value: Any) -> int:
    """How many lists and objects are nested inside each other; 0 for a bare value."""
    deepest, level = 0, [value]
    while level := [v for v in level if isinstance(v, dict | list | tuple)]:
        deepest += 1
        level = [inner for v in level for inner in (v.values() if isinstance(v, dict) else v)]
    return deepest
