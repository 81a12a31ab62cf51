"""App config: the months' partitions are made as soon as the tables are."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def _make_partitions(**_: Any) -> None:
    from jobs.services.partitions import ensure_months

    ensure_months()


class JobsConfig(AppConfig):
    """The jobs wing: the engine and its tables."""

    name = "jobs"

    def ready(self) -> None:
        """Register what runs after migrations."""
        post_migrate.connect(_make_partitions, sender=self)
