"""SQL text from .sql files and the literals of its array parameters. Knows neither Django nor a connection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_HEAD = re.compile(r"\A(?:--[^\n]*\n)+")


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL text under a name that the server's own statistics show."""

    name: str
    text: str

    def without(self, part: str) -> Statement:
        """The same without the lines from ``-- part NAME`` to ``-- end of NAME``: what is not there is not planned."""
        text, count = re.subn(rf"^ *-- part {part}\n.*?^ *-- end of {part}\n", "", self.text, flags=re.M | re.S)
        if count != 1:
            raise ValueError(f"{self.name} has {count} parts named {part}")
        return Statement(self.name, text)


@dataclass(frozen=True, slots=True)
class Call:
    """A statement with the values for its parameters."""

    statement: Statement
    params: Mapping[str, object]


def load(folder: Path, name: str) -> Statement:
    """Read ``folder/name.sql``; its head comment gives way to a one-line tag."""
    body = _HEAD.sub("", (folder / f"{name}.sql").read_text(encoding="utf-8")).strip().removesuffix(";")
    return Statement(name, f"/* {name} */ {body}")


def text_array(values: Sequence[str | None]) -> str:
    """The literal of a text[] parameter. The driver's own adapter costs a microsecond an element; this does not."""
    return "{" + ",".join(["NULL" if v is None else f'"{_escaped(v)}"' for v in values]) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def plain_array(values: Sequence[object]) -> str:
    """The literal of an array of uuids, numbers or booleans: values whose text needs no quoting; None is NULL."""
    return "{" + ",".join(["NULL" if v is None else str(v) for v in values]) + "}"


def varying(values: Sequence[T], usual: object = None) -> Sequence[T]:
    """The values of a column for an array parameter; none if each is the usual one, which the statement then puts in.

    ``unnest`` of several arrays fills up the shorter ones with nulls.
    """
    return () if values.count(usual) == len(values) else values
