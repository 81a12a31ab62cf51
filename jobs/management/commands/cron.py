"""manage.py cron preview: when an expression fires, in words and times."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime

from jobs.cron import CronError, parse, zone_of
from jobs.cron_notes import MOST, preview, sentence, warnings
from scheduler_project.lib.tzdata import tzdata_version


class Command(BaseCommand):
    help = "Show when a cron expression fires."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        show = verbs.add_parser("preview", help="the next fires, with a note at each clock change")
        show.add_argument("expression", help="five fields in quotes, or @daily and the like")
        show.add_argument("--tz", default="UTC", help="the schedule's zone, such as Europe/Berlin")
        show.add_argument("--viewer-tz", default="UTC", help="a second zone to show")
        show.add_argument("--after", help="2026-03-28T12:00:00Z; now if not given")
        show.add_argument("--count", type=int, default=10, help=f"1 to {MOST}")
        show.add_argument("--gap", choices=["run_after", "skip"], default="run_after")
        show.add_argument("--repeat", choices=["first", "both"], default="first")
        show.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            cron = parse(options["expression"])
            zone, viewer = zone_of(options["tz"]), zone_of(options["viewer_tz"])
        except CronError as error:
            raise CommandError(f"This can not be used: it {error}" if "fields" in str(error) else str(error)) from error
        if not 1 <= options["count"] <= MOST:
            raise CommandError(f"--count must be from 1 to {MOST}")
        after, changes = _after(options["after"]), (options["gap"], options["repeat"])
        rows = preview(cron, zone, after, count=options["count"], viewer=viewer, changes=changes)
        found = {
            "expression": cron.text,
            "sentence": sentence(cron),
            "timezone": zone.key,
            "tzdata": tzdata_version(),
            "warnings": warnings(cron),
            "fires": [
                {
                    "at": row.at.isoformat().replace("+00:00", "Z"), "local": row.local.isoformat(),
                    "viewer": row.viewer.isoformat(), "note": row.note,
                }
                for row in rows
            ],
        }  # fmt: skip
        self.stdout.write(json.dumps(found, indent=2) if options["json"] else self._text(found, viewer))

    def _text(self, found: dict[str, Any], viewer: ZoneInfo) -> str:
        lines = [f"{found['sentence']} ({found['timezone']}, time-zone data {found['tzdata']})"]
        lines += [f"  ! {text}" for text in found["warnings"]]
        lines.append("")
        for fire in found["fires"]:
            shown = f"  {fire['local'][:16].replace('T', ' ')} {fire['local'][19:]}   {fire['at']}"
            if viewer.key != "UTC":
                shown += f"   {fire['viewer'][:16].replace('T', ' ')} {viewer.key}"
            lines.append(f"{shown}   {fire['note']}".rstrip())
        return "\n".join(lines)


def _after(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise CommandError(f"--after: {text!r} is not a time with a zone, such as 2026-03-28T12:00:00Z.")
    return moment
