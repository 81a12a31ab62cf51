"""manage.py openapi: print the API's schema, as it is committed in docs/openapi.json; or hold it against another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler_project.lib.rest.schema import as_text, document
from scheduler_project.lib.rest.schema_diff import losses


class Command(BaseCommand):
    help = "Print the schema of the REST API (OpenAPI 3.1, JSON)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        either = parser.add_mutually_exclusive_group()
        either.add_argument("--check", metavar="FILE", type=Path, help="fail unless FILE is this very schema")
        either.add_argument("--against", metavar="FILE", type=Path, help="fail if something of FILE was taken away")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["check"]:
            self._check(options["check"])
        elif options["against"]:
            self._compare(options["against"])
        else:
            self.stdout.write(as_text(), ending="")

    def _check(self, file: Path) -> None:
        if file.read_text(encoding="utf-8") != as_text():
            raise CommandError(f"{file} is not the schema of this code. Run: manage.py openapi > {file}")

    def _compare(self, file: Path) -> None:
        if found := losses(json.loads(file.read_text(encoding="utf-8")), document()):
            raise CommandError("The API may only grow; clients could miss this:\n  " + "\n  ".join(found))
