"""manage.py prove: the promises of the engine, checked on this installation."""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, close_old_connections
from psycopg.errors import UndefinedTable

from jobs.prove.registry import PROOFS
from jobs.prove.runner import Verdict, command_of, prove
from jobs.prove.stage.proof import Proof
from jobs.services.proofs import keep_result
from scheduler_project.lib.figures import lines_of
from scheduler_project.lib.scratch import scratch_database

MOST = 100_000_000


class Command(BaseCommand):
    help = (
        "Check the promises of the engine here: stage each fault for real in a scratch database, count, and say "
        "whether the bar is met. Yours is touched only to keep the results."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("proofs", nargs="*", metavar="NAME", help=", ".join(PROOFS))
        parser.add_argument("--all", action="store_true", help="all of them")
        parser.add_argument("--quick", action="store_true", help="small sizes: minutes instead of hours")
        parser.add_argument(
            "--set", action="append", default=[], metavar="NAME=NUMBER", help="a size, such as jobs=5000"
        )
        parser.add_argument("--list", action="store_true", help="say what there is, with its sizes")
        parser.add_argument("--json", action="store_true")
        parser.add_argument("--break", dest="guard", default="", help="")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["list"]:
            self.stdout.write("\n".join(_described(proof) for proof in PROOFS.values()))
            return
        chosen = _chosen(options["proofs"], is_all=options["all"])
        sizes = _sizes(chosen, options["set"], is_quick=options["quick"])
        guard = options["guard"]
        if guard and (len(chosen) != 1 or guard not in chosen[0].breaks):
            raise CommandError("--break is for one proof: " + ", ".join(chosen[0].breaks), returncode=2)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _leave)
        if settings.EMBEDDED is not None:
            settings.EMBEDDED.ensure().create_database(settings.DATABASES["default"]["NAME"])
        try:
            verdicts = self._run(chosen, sizes, guard, is_quick=options["quick"])
        except KeyboardInterrupt:
            raise CommandError("Interrupted; what was running is cleared away.", returncode=130) from None
        self.stdout.write(_as_json(verdicts) if options["json"] else _as_table(verdicts))
        if not all(verdict.is_met for verdict in verdicts):
            sys.exit(1)

    def _run(
        self, chosen: Sequence[Proof], sizes: Mapping[str, Mapping[str, int]], guard: str, *, is_quick: bool
    ) -> list[Verdict]:
        verdicts = []
        self.stderr.write("making a scratch database")
        with scratch_database("prove") as base:
            for number, proof in enumerate(chosen, 1):
                began = time.monotonic()

                def say(text: str, name: str = proof.name, began: float = began) -> None:
                    self.stderr.write(f"{name} {time.monotonic() - began:5.1f} s  {text}")

                say(f"{number} of {len(chosen)}: {proof.promise}")
                verdict = prove(proof, base, sizes[proof.name], guard=guard, say=say)
                say(_word(verdict))
                if not guard:
                    self._keep(proof, verdict, is_quick=is_quick)
                verdicts.append(verdict)
        return verdicts

    def _keep(self, proof: Proof, verdict: Verdict, *, is_quick: bool) -> None:
        """For the dashboard. A database without the table, or that is away, spoils no proof."""
        word = "skipped" if verdict.is_skipped else "met" if verdict.is_met else "missed"
        command = command_of(proof, verdict.sizes, is_quick=is_quick)
        close_old_connections()
        try:
            keep_result(proof.name, word, verdict.figures, reason=verdict.said, command=command, took_s=verdict.took_s)
        except DatabaseError as error:
            why = str(error).splitlines()[0]
            if isinstance(error.__cause__, UndefinedTable):
                why = "its table is not there yet, run manage.py migrate"
            self.stderr.write(f"{proof.name}: the result could not be kept: {why}")


def _leave(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt


def _chosen(names: Sequence[str], *, is_all: bool) -> list[Proof]:
    if is_all == bool(names):
        raise CommandError("Name proofs, or say --all. There are: " + ", ".join(PROOFS), returncode=2)
    unknown = [name for name in names if name not in PROOFS]
    if unknown:
        raise CommandError(f"There is no proof {unknown[0]!r}. There are: " + ", ".join(PROOFS), returncode=2)
    return [proof for proof in PROOFS.values() if is_all or proof.name in names]


def _sizes(chosen: Sequence[Proof], changes: Sequence[str], *, is_quick: bool) -> dict[str, dict[str, int]]:
    sizes = {p.name: {n: s.quick if is_quick else s.full for n, s in p.sizes.items()} for p in chosen}
    for change in changes:
        name, _, text = change.partition("=")
        known = [values for values in sizes.values() if name in values]
        if not known:
            there = sorted({name for values in sizes.values() for name in values})
            raise CommandError(
                f"--set {change}: there is no size {name!r}. There are: " + ", ".join(there), returncode=2
            )
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:12]) <= MOST):
            raise CommandError(f"--set {change}: a number from 1 to {MOST:,} is needed", returncode=2)
        for values in known:
            values[name] = int(text)
    return sizes


def _described(proof: Proof) -> str:
    sizes = ", ".join(f"{name} {size.full:,} (quick {size.quick:,})" for name, size in proof.sizes.items())
    return f"{proof.name:<14}{proof.promise}\n{'':<14}{sizes}"


def _word(verdict: Verdict) -> str:
    if verdict.is_skipped:
        return f"not possible here: {verdict.reason}"
    return "met" if verdict.is_met else f"MISSED{': ' * bool(verdict.reason)}{verdict.reason}"


def _as_table(verdicts: Sequence[Verdict]) -> str:
    lines = []
    for verdict in verdicts:
        lines += [f"\n{verdict.name}: {_word(verdict)} ({verdict.took_s:.0f} s)", *lines_of(verdict.figures)]
        lines += [f"  {note}" for note in verdict.notes]
    missed = [verdict.name for verdict in verdicts if not verdict.is_met]
    skipped = [verdict.name for verdict in verdicts if verdict.is_skipped]
    parts = [verdict.name for verdict in verdicts if verdict.notes]
    told = {"missed": missed, "not possible here": skipped, "in part not staged": parts}
    lines.append(f"\n{len(verdicts) - len(missed) - len(skipped)} of {len(verdicts)} met")
    lines[-1] += "".join(f"; {what}: {', '.join(names)}" for what, names in told.items() if names)
    return "\n".join(lines)


def _as_json(verdicts: Sequence[Verdict]) -> str:
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "system": platform.platform()}
    proofs = [
        {
            "name": v.name,
            "met": v.is_met,
            "skipped": v.is_skipped,
            "reason": v.reason,
            "notes": v.notes,
            "sizes": dict(v.sizes),
            "took_s": round(v.took_s, 1),
            "figures": [
                {"name": f.name, "value": round(f.value, 4), "unit": f.unit, "target": f.target, "met": f.is_met}
                for f in v.figures
            ],
        }
        for v in verdicts
    ]
    return json.dumps({"machine": machine, "proofs": proofs}, indent=2)
