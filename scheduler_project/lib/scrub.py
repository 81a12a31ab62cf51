"""Blotting known secrets out of texts: in an error, a traceback, a line of a log, however they were written there."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "••••••"
#: Shorter ones are blotted out only where they stand as a word: "no" is part of too many others.
SHORT = 4


class Scrubber:
    """Knows the secrets of one job."""

    def __init__(self, secrets: Iterable[Any]) -> None:
        forms = {form for secret in secrets for leaf in _leaves(secret) for form in _forms(leaf)}
        # The longest first: one secret may be part of another.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        parts = [re.escape(form) if len(form) >= SHORT else rf"(?<!\w){re.escape(form)}(?!\w)" for form in ordered]
        self._pattern = re.compile("|".join(parts)) if parts else None

    def __call__(self, text: str) -> str:
        """The text without the secrets."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def value(self, value: Any) -> Any:
        """A JSON value without them: in its texts, its names and, where a number is a secret, its numbers."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {self(str(name)): self.value(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            text = str(value)
            return MASK if self(text) == MASK else value
        return value


def _leaves(secret: Any) -> Iterator[str]:
    if isinstance(secret, dict):
        for inner in secret.values():
            yield from _leaves(inner)
    elif isinstance(secret, list):
        for inner in secret:
            yield from _leaves(inner)
    elif isinstance(secret, str):
        yield secret
    elif isinstance(secret, int | float) and not isinstance(secret, bool):
        yield str(secret)


def _forms(leaf: str) -> Iterator[str]:
    """A secret as it may stand in a text: plain, in a Python or JSON literal, in an address, in a basic header."""
    plain = leaf.strip()
    if not plain:
        return
    for form in (leaf, plain):
        yield form
        yield repr(form)[1:-1]
        yield json.dumps(form)[1:-1]
        yield json.dumps(form, ensure_ascii=False)[1:-1]
        try:
            yield quote(form, safe="")
            yield quote_plus(form)
            encoded = base64.b64encode(form.encode()).decode().rstrip("=")
        except UnicodeEncodeError:  # half a surrogate pair, which no address can hold
            continue
        if len(encoded) >= 2 * SHORT:
            yield encoded
    scheme, _, credentials = plain.partition(" ")
    if scheme.lower() in ("bearer", "basic", "token") and credentials.strip():
        yield credentials.strip()
