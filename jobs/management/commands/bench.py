"""manage.py bench: how fast the engine is on this machine, in proportion to what PostgreSQL can do here."""

from __future__ import annotations

import json
import os
import platform
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.bench.api import api
from jobs.bench.backlog import backlog
from jobs.bench.batch import batch
from jobs.bench.ceiling import ceilings
from jobs.bench.dashboards import dashboards
from jobs.bench.drain import drain
from jobs.bench.enqueue import enqueue
from jobs.bench.history import history
from jobs.bench.horizon import horizon
from jobs.bench.latency import latency
from jobs.bench.limits import limits
from jobs.bench.live import live
from jobs.bench.many_queues import many_queues
from jobs.bench.memory import memory
from jobs.bench.pages import pages
from jobs.bench.peers.compare import is_there, peers
from jobs.bench.stage import prepare
from scheduler_project.lib.figures import Figure, lines_of
from scheduler_project.lib.scratch import scratch_database

#: name -> (measure, jobs at full size)
MEASURES = {
    "ceiling": (ceilings, 100_000),
    "enqueue": (enqueue, 100_000),
    "drain": (drain, 100_000),
    "latency": (latency, 300),
    "limits": (limits, 60_000),
    "queues": (many_queues, 60_000),
    "horizon": (horizon, 60_000),
    "backlog": (backlog, 1_000_000),
    "history": (history, 5_000_000),
    "batch": (batch, 100_000),
    "memory": (memory, 1_000_000),
    "api": (api, 1_000_000),
    "pages": (pages, 1_000_000),
    "dashboards": (dashboards, 600_000),
    "live": (live, 5_000),
    "peers": (peers, 20_000),
}


class Command(BaseCommand):
    help = "Measure the engine in a scratch database that is dropped afterwards; yours is never touched."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("measure", choices=[*MEASURES, "all"])
        parser.add_argument("--jobs", type=int, help="how many jobs, instead of the full size")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["jobs"] is not None and options["jobs"] < 100:
            raise CommandError("--jobs must be 100 or more")
        if settings.EMBEDDED is not None:
            settings.EMBEDDED.ensure().create_database(settings.DATABASES["default"]["NAME"])
        names = list(MEASURES) if options["measure"] == "all" else [options["measure"]]
        if options["measure"] == "all" and not is_there():
            names.remove("peers")
            self.stderr.write("peers: left out, they are not installed (make peers)")
        found: dict[str, list[Figure]] = {}
        for name in names:
            measure, jobs = MEASURES[name]
            self.stderr.write(f"{name}: making a scratch database")
            with scratch_database("bench") as scratch:
                prepare(scratch)
                found[name] = measure(scratch, jobs=options["jobs"] or jobs, say=self.stderr.write)
        self.stdout.write(self._as_json(found) if options["json"] else self._as_table(found))

    def _as_table(self, found: dict[str, list[Figure]]) -> str:
        lines = []
        for name, figures in found.items():
            lines.append(f"\n{name}")
            lines += lines_of(figures)
        return "\n".join(lines)

    def _as_json(self, found: dict[str, list[Figure]]) -> str:
        figures = [figure for several in found.values() for figure in several]
        targets = [
            {"name": f.name, "value": round(f.value, 4), "target": f.target, "met": f.is_met}
            for f in figures
            if f.target is not None
        ]
        values = {f.name: round(f.value, 3) for f in figures}
        machine = {"python": platform.python_version(), "cores": os.cpu_count(), "system": platform.platform()}
        return json.dumps({"machine": machine, "values": values, "targets": targets}, indent=2)
