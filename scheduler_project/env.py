"""Typed readers of the APP_ environment: a bad value stops the start and says what is allowed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

PREFIX = "APP_"
MAX_DIGITS = 100
T = TypeVar("T")


class Variable(NamedTuple):
    """A variable that was asked for: what it is when it is unset, and what it may be."""

    default: str
    allowed: str


#: All that were read, in their order: docs/configuration.md is made of them.
READ: dict[str, Variable] = {}


class BadSetting(SystemExit):
    """A variable holds a value the product can not run with; the message is all the user sees."""

    def __init__(self, name: str, value: str, allowed: str) -> None:
        super().__init__(f"{PREFIX}{name}={value!r} is not usable: {allowed}. Correct or unset it and start again.")


def text(name: str, default: str = "") -> str:
    """The variable as it stands, without surrounding blanks."""
    READ.setdefault(name, Variable(default, "any text"))
    return os.environ.get(PREFIX + name, default).strip()


def secret(name: str, *, development: str, is_production: bool, min_length: int = 32) -> str:
    """A secret: ``development`` will do on a developer's machine and never in production."""
    allowed = f"a random text of at least {min_length} characters is needed"
    value = _read(name, "", allowed)
    if not value and not is_production:
        return development
    if len(value) < min_length:
        raise BadSetting(name, "*" * len(value), allowed)
    return value


def integer(name: str, default: int, *, at_least: int, at_most: int) -> int:
    """A whole number within its bounds, both included."""
    allowed = f"a whole number from {at_least} to {at_most} is needed"
    raw = _read(name, str(default), allowed)
    if not raw:
        return default
    # isascii first: int() also reads the digits of other scripts and underscores, which nobody means; and it raises
    # an error of its own for thousands of digits.
    if not raw.isascii() or not raw.removeprefix("-").isdigit() or len(raw) > MAX_DIGITS:
        raise BadSetting(name, raw, allowed)
    value = int(raw)
    if not at_least <= value <= at_most:
        raise BadSetting(name, raw, allowed)
    return value


def boolean(name: str, *, default: bool) -> bool:
    """true or false, 1 or 0, yes or no, on or off."""
    raw = _read(name, str(default).lower(), "true or false is needed").lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    raise BadSetting(name, raw, "true or false is needed")


def choice(name: str, default: str, allowed: Sequence[str]) -> str:
    """One of a few words, in any case."""
    words = f"one of {', '.join(allowed)} is needed"
    value = (_read(name, default, words) or default).lower()
    if value not in allowed:
        raise BadSetting(name, value, words)
    return value


def names(name: str, default: Sequence[str] = ()) -> list[str]:
    """A list separated by commas."""
    raw = _read(name, ",".join(default), "names are needed, separated by commas")
    return [part.strip() for part in raw.split(",") if part.strip()] if raw else list(default)


def parsed(name: str, value: str, parse: Callable[[str], T], allowed: str, *, is_secret: bool = False) -> T:
    """Whatever ``parse`` makes of ``value``; its ValueError becomes the clear message, without a secret value."""
    if name in READ:
        READ[name] = READ[name]._replace(allowed=allowed)
    try:
        return parse(value)
    except ValueError:
        raise BadSetting(name, "***" if is_secret else value, allowed) from None


def pairs(name: str, allowed: str) -> dict[str, str]:
    """Names with a value each: ``a=x,b=y``."""
    _read(name, "", allowed)
    found = {}
    for pair in names(name):
        key, sign, value = (part.strip() for part in pair.partition("="))
        if not (key and sign and value):
            raise BadSetting(name, pair, allowed)
        found[key] = value
    return found


def _read(name: str, default: str, allowed: str) -> str:
    """The value as it stands, empty if it is unset; what may stand there is remembered."""
    READ.setdefault(name, Variable(default, allowed))
    return text(name)
