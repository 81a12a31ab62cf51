"""Names that people give things: one spelling of each, and nothing invisible in it."""

from __future__ import annotations

import unicodedata

from scheduler_project.lib.errors import ValidationFailed


def clean_name(value: str, field: str, max_chars: int, *, forbidden: str = "") -> str:
    """The name in its composed form (NFC), without blanks around it.

    Composed and decomposed letters look alike; only one of the two spellings is kept, so that "unique" means it.

    Args:
        forbidden: characters that have a meaning of their own where this name is used.

    Raises:
        ValidationFailed: empty, too long, or with characters that can not be seen.
    """
    name = unicodedata.normalize("NFC", value).strip()
    if not 0 < len(name) <= max_chars or not name.isprintable():
        raise ValidationFailed.of(field, f"must be 1 to {max_chars} printable characters")
    if found := sorted(set(forbidden) & set(name)):
        raise ValidationFailed.of(field, f"must not contain {' '.join(found)}")
    return name
