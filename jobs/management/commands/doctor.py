"""manage.py doctor: what is out of order in an installation, and what to do about it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.doctor.examination import CHECKS, Entry, examine
from jobs.doctor.finding import Level

_MARKS = {Level.OK: "ok     ", Level.WARNING: "warning", Level.PROBLEM: "PROBLEM"}


class Command(BaseCommand):
    help = "Look at settings, database, leader, workers, queues and schedules; ends with 1 if there is a problem."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
        parser.add_argument("--strict", action="store_true", help="end with 1 also for a warning")
        parser.add_argument("--only", default="", help=f"checks by name, separated by commas: {', '.join(CHECKS)}")

    def handle(self, *args: Any, **options: Any) -> None:
        only = [name.strip() for name in options["only"].split(",") if name.strip()]
        if unknown := sorted(set(only) - set(CHECKS)):
            raise CommandError(f"--only: {unknown[0]} is no check; known are {', '.join(CHECKS)}", returncode=2)
        entries = list(self._told(examine(only), is_json=options["json"]))
        counts = Counter(entry.finding.level for entry in entries)
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(entries, counts), indent=2))
        else:
            self.stdout.write(f"\n{counts[Level.PROBLEM]} problems, {counts[Level.WARNING]} warnings")
        if counts[Level.PROBLEM] or (options["strict"] and counts[Level.WARNING]):
            sys.exit(1)

    def _told(self, entries: Any, *, is_json: bool) -> Any:
        """Pass the entries on; in lines each is written as soon as it is there."""
        for entry in entries:
            if not is_json:
                self.stdout.write(f"{_MARKS[entry.finding.level]}  {entry.check:14} {entry.finding.text}")
                if entry.finding.do:
                    self.stdout.write(f"{'':25}do: {entry.finding.do}")
            yield entry


def _as_json(entries: list[Entry], counts: Counter[Level]) -> dict[str, Any]:
    return {
        "problems": counts[Level.PROBLEM],
        "warnings": counts[Level.WARNING],
        "findings": [
            {
                "check": entry.check,
                "level": str(entry.finding.level),
                "text": entry.finding.text,
                "do": entry.finding.do,
            }
            for entry in entries
        ],
    }
