"""What a proof is: a promise, its sizes, what stages the fault and counts, and what breaks its guards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from jobs.promises import PROMISES
from scheduler_project.lib.figures import Figure

if TYPE_CHECKING:
    from jobs.prove.stage.stage import Stage


class Size(NamedTuple):
    """A parameter's values: for ``--quick``, and for a run at full size."""

    quick: int
    full: int


@dataclass(frozen=True, slots=True)
class Proof:
    """One promise that can be checked.

    Attributes:
        run: stages the fault and answers with figures; those with a target are the bars.
        sizes: its parameters; any can be set on the command line.
        breaks: name -> what takes a guard away, in each of the proof's own processes. Broken, the proof must fail:
            one that can not fail says nothing. Never reached unless asked for.
    """

    name: str
    run: Callable[[Stage], list[Figure]]
    sizes: Mapping[str, Size]
    breaks: Mapping[str, Callable[[], None]]
    #: Settings of its processes.
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def promise(self) -> str:
        """What holds, in one sentence."""
        return PROMISES[self.name]


class NotReached(Exception):
    """What was waited for did not happen in time: the promise is not kept, and this says where it stuck."""


class NotPossible(Exception):
    """The fault can not be staged on this machine; says what is missing. Neither met nor missed."""


def none_of(name: str, value: float, unit: str = "") -> Figure:
    """A figure that must be zero."""
    return Figure(name, value, unit, 0, is_most=True)


def all_of(name: str, value: float, wanted: float, unit: str = "") -> Figure:
    """A figure that must reach what is wanted."""
    return Figure(name, value, unit, wanted)


def at_most(name: str, value: float, bar: float, unit: str = "") -> Figure:
    """A figure that must not be higher than its bar."""
    return Figure(name, value, unit, bar, is_most=True)
