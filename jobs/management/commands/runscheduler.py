"""manage.py runscheduler: lead the scheduling, or stand by."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.scheduler.daemon import Daemon, SchedulerConfig
from scheduler_project.lib import pg


class Command(BaseCommand):
    help = "Promote due jobs, reap expired leases, keep the tables in order. One leads, the others stand by."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--metrics-port", type=int, default=0, help="serve Prometheus metrics; 0 is off")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 <= options["metrics_port"] <= 65_535:
            raise CommandError("--metrics-port must be from 0 to 65535")
        pg.use_direct_session("punctual scheduler")
        try:
            Daemon(SchedulerConfig(metrics_port=options["metrics_port"]), listen=settings.LISTEN).run()
        except OSError as error:
            raise CommandError(f"The scheduler can not start: {error}") from error
