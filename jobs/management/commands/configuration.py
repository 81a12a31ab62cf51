"""manage.py configuration: print the page of all settings, as it is committed in docs/configuration.md."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from scheduler_project.configuration import page
from scheduler_project.env import READ


class Command(BaseCommand):
    help = "Print the page of all settings: docs/configuration.md. Run it with none of them set."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(page(READ), ending="")
