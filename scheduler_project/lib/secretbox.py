"""Encryption at rest for small secrets. The keys come from APP_SECRET_KEY and the ones it had before.

What is written is sealed with the present key; what an earlier key sealed can be read as long as that key is listed in
APP_SECRET_KEY_FALLBACKS. To leave a key behind: put it there, ``reseal`` what is stored, take it out.
"""

from __future__ import annotations

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

# Part of every derived key: the same secret signs sessions, and the two uses must not share a key.
_PURPOSE = b"punctual.secretbox.v1"


class Sealed(Exception):
    """A value can not be opened: no known key fits, or it was changed. Never holds the value."""

    def __init__(self) -> None:
        super().__init__("a stored secret can not be opened with APP_SECRET_KEY or any of APP_SECRET_KEY_FALLBACKS")


def encrypt(value: bytes) -> str:
    """Seal a value with the present key; ASCII text, about 4/3 of the length and 100 characters more."""
    return _box().encrypt(value).decode("ascii")


def decrypt(sealed: str) -> bytes:
    """Open what ``encrypt`` made.

    Raises:
        Sealed: no known key fits, or the text was changed.
    """
    try:
        return _box().decrypt(sealed.encode("utf-8", "replace"))
    except InvalidToken:
        raise Sealed from None


def reseal(sealed: str) -> str:
    """The same secret, sealed with the present key.

    Raises:
        Sealed: no known key fits.
    """
    return encrypt(decrypt(sealed))


def _box() -> MultiFernet:
    return _box_of((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=8)
def _box_of(secrets: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_key(secret)) for secret in secrets])


def _key(secret: str) -> bytes:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(secret.encode())
    return base64.urlsafe_b64encode(derived)
