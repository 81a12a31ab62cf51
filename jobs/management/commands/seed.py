"""manage.py seed: sample data to try the product with."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from jobs.services.sample_data import load_sample_data


class Command(BaseCommand):
    help = (
        "Load the sample data, or what is missing of it. Refused in production: its passwords are known to everybody."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.IS_PRODUCTION:
            raise CommandError("Sample data is refused in production: its passwords and its API key are published.")
        load_sample_data()
        if options["verbosity"]:
            self.stdout.write("The sample data is loaded: log in as admin@example.com, password password123.")
