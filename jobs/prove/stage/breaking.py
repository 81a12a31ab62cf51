"""Taking a guard away, in this process only: how a proof shows that it can fail.

Nothing in the product asks whether it is broken: a proof's process changes the loaded statements and functions before
its command begins.
"""

from __future__ import annotations

import sys
from typing import Any

from jobs import sql
from scheduler_project.lib.statements import Statement


def rewrite(name: str, old: str, new: str) -> None:
    """Replace a piece of one of the engine's statements.

    Raises:
        LookupError: the piece is not there (any more), so nothing would be broken.
    """
    found: Statement = getattr(sql, name)
    if old not in found.text:
        raise LookupError(f"{name} does not hold {old!r}: its guard can not be taken away like this")
    setattr(sql, name, Statement(found.name, found.text.replace(old, new)))


def replace(place: Any, name: str, new: Any) -> None:
    """Replace a function or value of a module or class.

    Raises:
        LookupError: there is none of this name.
    """
    if not hasattr(place, name):
        raise LookupError(f"{place} has no {name}: its guard can not be taken away like this")
    setattr(place, name, new)


def replace_everywhere(old: Any, new: Any) -> None:
    """Replace a function in every module that has imported it by name."""
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is old:
                setattr(module, name, new)
