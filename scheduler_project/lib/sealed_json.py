"""Secret values inside JSON: sealed at rest, each in the place where it stood.

A sealed value is ``{"$secret": ciphertext, "mac": …}``. Nobody can hand one in: the name ``$secret`` is refused in what
comes from outside, and the ciphertext is authenticated. The mac is a keyed hash of ciphertext and value together: it
tells whether another value is the same one, without the ciphertext being opened, and equal secrets do not look alike.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.crypto import salted_hmac

from scheduler_project.lib import secretbox

NAME = "$secret"
#: Stands in the text of every JSON value with a sealed part, as ``json.dumps`` and PostgreSQL write it, and in no other
#: that has passed ``has_reserved_name``.
SIGN = '"$secret":'
MASK = "••••••"
_MAC = "mac"
_PURPOSE = "punctual.sealed_json"

#: Names of objects on the way to a value; lists are passed through; ``*`` is any name. Case does not count.
SecretPath = tuple[str, ...]


class Opened(NamedTuple):
    """A value in the clear, and the secret parts of it."""

    value: Any
    secrets: list[Any]


def has_reserved_name(value: Any) -> bool:
    """Does an object somewhere in the value have the name that only sealed values have?"""
    return any(isinstance(inner, dict) and NAME in inner for inner in _walk(value))


def seal(value: Any, paths: Sequence[SecretPath]) -> Any:
    """The value with everything at these paths sealed; null stays, and so does what is sealed already.

    What comes from outside has passed ``has_reserved_name`` before.
    """
    return _seal(value, [tuple(name.casefold() for name in path) for path in paths])


def opened(value: Any) -> Opened:
    """The value in the clear.

    Raises:
        secretbox.Sealed: no known key opens it.
    """
    secrets: list[Any] = []

    def open_(mark: dict[str, Any]) -> Any:
        secrets.append(json.loads(secretbox.decrypt(mark[NAME])))
        return secrets[-1]

    return Opened(_mapped(value, open_), secrets)


def masked(value: Any) -> Any:
    """The value with a mask for each sealed part, for people to see."""
    return _mapped(value, lambda _: MASK)


def renewals(value: Any) -> dict[str, str]:
    """What to replace in the text of a value so that all its secrets are sealed by the present key; empty if they are.

    In the text, since numbers lose digits on the way through Python.

    Raises:
        secretbox.Sealed: no known key opens one of them.
    """
    found: dict[str, str] = {}

    def renew(mark: dict[str, Any]) -> Any:
        text = secretbox.decrypt(mark[NAME]).decode()
        if not hmac.compare_digest(_mac(settings.SECRET_KEY, mark[NAME], text), mark[_MAC]):
            new = _mark(text)
            found.update({mark[NAME]: new[NAME], mark[_MAC]: new[_MAC]})
        return mark

    _mapped(value, renew)
    return found


def is_same(stored: Any, given: Any) -> bool:
    """Is a stored value, with sealed parts, the value that is given in the clear?"""
    if is_mark(stored):
        text = _text(given)
        keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
        return any(hmac.compare_digest(_mac(key, stored[NAME], text), stored[_MAC]) for key in keys)
    if isinstance(stored, dict) and isinstance(given, dict):
        return stored.keys() == given.keys() and all(is_same(inner, given[name]) for name, inner in stored.items())
    if isinstance(stored, list) and isinstance(given, list | tuple):
        return len(stored) == len(given) and all(map(is_same, stored, given))
    if isinstance(stored, bool) or isinstance(given, bool):
        return stored is given
    return bool(stored == given)


def is_mark(value: Any) -> bool:
    """Is this a sealed value?"""
    return (
        isinstance(value, dict)
        and value.keys() == {NAME, _MAC}
        and isinstance(value[NAME], str)
        and isinstance(value[_MAC], str)
    )


def _walk(value: Any) -> Iterator[Any]:
    level = [value]
    while level:
        inner = level.pop()
        yield inner
        if isinstance(inner, dict):
            level += inner.values()
        elif isinstance(inner, list | tuple):
            level += inner


def _mapped(value: Any, replace: Any) -> Any:
    if isinstance(value, dict):
        if is_mark(value):
            return replace(value)
        return {name: _mapped(inner, replace) for name, inner in value.items()}
    return [_mapped(inner, replace) for inner in value] if isinstance(value, list) else value


def _seal(value: Any, paths: Sequence[SecretPath]) -> Any:
    if value is None or not paths or is_mark(value):
        return value
    if () in paths:
        return _mark(_text(value))
    if isinstance(value, dict):
        return {name: _seal(inner, _below(paths, name.casefold())) for name, inner in value.items()}
    return [_seal(inner, paths) for inner in value] if isinstance(value, list | tuple) else value


def _below(paths: Iterable[SecretPath], name: str) -> list[SecretPath]:
    return [path[1:] for path in paths if path[0] in (name, "*")]


def _text(value: Any) -> str:
    # One text for each value, however its objects are ordered.
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _mark(text: str) -> dict[str, str]:
    sealed = secretbox.encrypt(text.encode())
    return {NAME: sealed, _MAC: _mac(settings.SECRET_KEY, sealed, text)}


def _mac(key: str, sealed: str, text: str) -> str:
    return salted_hmac(_PURPOSE, f"{sealed}\n{text}", secret=key, algorithm="sha256").hexdigest()[:32]
