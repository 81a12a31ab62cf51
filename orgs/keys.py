"""Pure: API keys. ``pk_live_`` and 36 letters and digits, the last six a checksum over the rest.

The prefix lets secret scanners find a leaked key; the checksum shows a mistyped one without asking the database. A
key has 178 random bits, so its hash needs neither salt nor slowness.
"""

from __future__ import annotations

import hashlib
import secrets
import string
import zlib

LIVE, DEMO = "pk_live_", "pk_demo_"
PREFIX_CHARS = 14
MAX_KEY_CHARS = 100
_ALPHABET = string.digits + string.ascii_letters
_RANDOM_CHARS, _CHECKSUM_CHARS = 30, 6


def make_key() -> str:
    """A new key; nobody can make it again, so it must be shown now."""
    unsigned = LIVE + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_CHARS))
    return unsigned + _checksum(unsigned)


def is_well_formed(key: str) -> bool:
    """Can this be a key at all? False for typos; says nothing about whether it is known.

    Keys that begin with ``pk_demo_`` belong to sample data and are fixed texts without a checksum.
    """
    if key.startswith(DEMO):
        return key.isascii() and len(key) <= MAX_KEY_CHARS
    unsigned, checksum = key[:-_CHECKSUM_CHARS], key[-_CHECKSUM_CHARS:]
    body = unsigned.removeprefix(LIVE)
    if not key.startswith(LIVE) or len(body) != _RANDOM_CHARS or not key.isascii():
        return False
    return secrets.compare_digest(checksum, _checksum(unsigned))


def hash_key(key: str) -> str:
    """What is stored of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def _checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(_CHECKSUM_CHARS):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits
