"""Runs a proof in a process of its own, in a copy of the scratch database, and takes down what it says."""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jobs.prove.stage.actor import MARK
from jobs.prove.stage.process import SMALL_TIMES
from jobs.prove.stage.proof import Proof
from scheduler_project.lib.child import Child, ChildSpec, describe_end
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch, copy_of

_LAST_LINES = 15
_CLEAR_S = 8.0
_KEPT = {"APP_EMBEDDED_PG_HOME"}


@dataclass(slots=True)
class Verdict:
    """What came of a proof. ``reason`` says why there are no figures, ``notes`` what could not be staged."""

    name: str
    sizes: Mapping[str, int]
    figures: list[Figure] = field(default_factory=list)
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    is_skipped: bool = False
    took_s: float = 0.0

    @property
    def said(self) -> str:
        """All that is to be known beside the figures, in one line."""
        return "; ".join(filter(None, [self.reason, *self.notes]))

    @property
    def is_met(self) -> bool:
        """Every bar was met; a proof that could not be staged misses none."""
        return self.is_skipped or (not self.reason and all(figure.is_met is not False for figure in self.figures))


def prove(
    proof: Proof, base: Scratch, sizes: Mapping[str, int], *, guard: str = "", say: Callable[[str], None]
) -> Verdict:
    """Stage one proof; its processes and its database are gone afterwards, whatever happened."""
    verdict, began = Verdict(proof.name, sizes), time.monotonic()
    with copy_of(base) as scratch:
        arguments = [sys.executable, "-m", "jobs.prove.stage.actor", proof.name, json.dumps(dict(sizes)), guard]
        # None of the installation's own settings: a proof must say the same everywhere.
        settings = {**SMALL_TIMES, "APP_DATABASE_URL": scratch.url, **proof.env}
        settings |= {name: value for name, value in os.environ.items() if name in _KEPT}
        child = Child(ChildSpec(proof.name, arguments, settings, drops="APP_"))
        other: list[str] = []
        child.start()
        try:
            _listen(child, verdict, other, say)
        finally:
            _end(child)
            other += child.clear_away()
    if not verdict.figures and not verdict.reason:
        verdict.reason = "it broke off: " + " | ".join(other[-_LAST_LINES:])
    verdict.took_s = time.monotonic() - began
    return verdict


def _end(child: Child) -> None:
    """Let the actor clear away what only it knows of; then kill what is left: its workers are in its group."""
    if child.find_end() is None:
        child.signal(signal.SIGTERM)
        deadline = time.monotonic() + _CLEAR_S
        while child.find_end() is None and time.monotonic() < deadline:
            time.sleep(0.05)
    child.signal(signal.SIGKILL)


def _listen(child: Child, verdict: Verdict, other: list[str], say: Callable[[str], None]) -> None:
    with selectors.DefaultSelector() as selector:
        if child.output is None:
            return
        selector.register(child.output, selectors.EVENT_READ)
        while True:
            selector.select(0.5)
            for line in child.read_lines():
                _hear(line, verdict, other, say)
            if (code := child.find_end()) is not None:
                for line in child.read_lines():
                    _hear(line, verdict, other, say)
                if code:
                    other.append(describe_end(code))
                return


def _hear(line: str, verdict: Verdict, other: list[str], say: Callable[[str], None]) -> None:
    if not line.startswith(MARK):
        other.append(line)
        return
    message = json.loads(line.removeprefix(MARK))
    kind = message["kind"]
    if kind == "progress":
        say(message["text"])
    elif kind == "note":
        say(message["text"])
        verdict.notes.append(message["text"])
    elif kind == "figures":
        verdict.figures = [Figure(*values) for values in message["figures"]]
    else:
        verdict.reason, verdict.is_skipped = message["text"], kind == "skipped"


def command_of(proof: Proof, sizes: Mapping[str, int], *, is_quick: bool) -> str:
    """What to type to run it again like this."""
    changed = [
        f"--set {name}={value}"
        for name, value in sizes.items()
        if value != (proof.sizes[name].quick if is_quick else proof.sizes[name].full)
    ]
    return " ".join(["manage.py prove", proof.name, *(["--quick"] if is_quick else []), *changed])
