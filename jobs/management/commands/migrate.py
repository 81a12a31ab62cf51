"""manage.py migrate: Django's own, past any pooler: it holds a session, and what it sets in it, from end to end."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.commands.migrate import Command as MigrateCommand
from django.db import DEFAULT_DB_ALIAS

from scheduler_project.lib import pg


class Command(MigrateCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        if settings.IS_POOLED and options["database"] == DEFAULT_DB_ALIAS:
            pg.use_direct_session("punctual migrations", lock_timeout_ms=None)
        super().handle(*args, **options)
