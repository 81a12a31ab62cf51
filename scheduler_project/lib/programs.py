"""The programs that jobs may start: named by whoever runs the installation, resolved once, at the start."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class NotAllowed(Exception):
    """The program is not on the list, or no longer the file it was at the start."""


class NotHere(Exception):
    """The program is on the list, and this machine does not have it."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The list: each spelling that a caller may use, and the file behind all links; None if there is none here."""

    files: Mapping[str, str | None] = field(default_factory=dict)
    #: Where each spelling was found, before links were followed.
    places: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Sequence[str], path: str) -> Programs:
        """Resolve names on a search path; absolute paths stand for themselves.

        A machine without one of them may be a web server's, so that is no error here.

        Raises:
            ValueError: an entry is a relative path.
        """
        files: dict[str, str | None] = {}
        places: dict[str, str] = {}
        # Parts of the path that depend on the current directory would not always find the same file.
        fixed = os.pathsep.join(part for part in path.split(os.pathsep) if os.path.isabs(part))
        for name in names:
            if "\0" in name or (os.sep in name and (not os.path.isabs(name) or os.path.normpath(name) != name)):
                raise ValueError(name)
            place = shutil.which(name, path=fixed)
            spellings = {name} if place is None else {name, place}
            for spelling in spellings:
                files[spelling] = None if place is None else os.path.realpath(place)
                if place is not None:
                    places[spelling] = place
        return cls(files, places)

    def find(self, name: str) -> str:
        """The file to start for a spelling from the list.

        Raises:
            NotAllowed: it is none, or a link has been turned to another file since the start.
            NotHere: this machine has no such program.
        """
        if name not in self.files:
            raise NotAllowed("is not on the list of allowed programs")
        found = self.files[name]
        if found is None:
            raise NotHere("is allowed, but was not found on this machine when the worker started")
        if os.path.realpath(self.places[name]) != found:
            raise NotAllowed("is another file now than when the worker started; restart the worker if that is meant")
        return found

    def __bool__(self) -> bool:
        return bool(self.files)


def read_variable_names(text: str) -> list[str]:
    """Names of environment variables that may be passed on, separated by commas.

    Raises:
        ValueError: one is malformed, or is one of our own settings, which hold our secrets.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    if bad := [name for name in names if not _VARIABLE.fullmatch(name) or name.upper().startswith("APP_")]:
        raise ValueError(bad[0])
    return names
