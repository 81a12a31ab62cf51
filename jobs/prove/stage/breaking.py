"""Taking a guard away, in this process only: how a proof shows that it can fail.

Nothing in the product asks whether it is broken: a proof's process changes the loaded statements and functions before
its command begins.
"""

from __future__ import annotations

import sys
from inspect import signature
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
        LookupError: there is none of this name, or it is called otherwise (by now): that would be an error of the
            proof's own, which says nothing about the guard.
    """
    if not hasattr(place, name):
        raise LookupError(f"{place} has no {name}: its guard can not be taken away like this")
    if callable(new) and not _takes_what(new, getattr(place, name)):
        raise LookupError(f"{place}.{name} takes other arguments: its guard can not be taken away like this")
    setattr(place, name, new)


def _takes_what(new: Any, old: Any) -> bool:
    """Can the new function be called with what the old one can not do without?"""
    needed = [one for one in signature(old).parameters.values() if one.default is one.empty]
    by_place = [one for one in needed if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    by_name = [one.name for one in needed if one.kind is one.KEYWORD_ONLY]
    try:
        signature(new).bind(*by_place, **dict.fromkeys(by_name))
    except TypeError:
        return False
    return True


def replace_everywhere(old: Any, new: Any) -> None:
    """Replace a function in every module that has imported it by name."""
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is old:
                setattr(module, name, new)
