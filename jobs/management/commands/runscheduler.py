"""manage.py runscheduler: lead the scheduling, or stand by."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.metrics_port import add_metrics_port, checked_port
from jobs.scheduler.daemon import Daemon, SchedulerConfig
from scheduler_project.lib import pg


class Command(BaseCommand):
    help = "Promote due jobs, reap expired leases, keep the tables in order. One leads, the others stand by."

    def add_arguments(self, parser: CommandParser) -> None:
        add_metrics_port(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        port = checked_port(options["metrics_port"])
        pg.use_direct_session("punctual scheduler")
        try:
            Daemon(SchedulerConfig(metrics_port=port), listen=settings.LISTEN).run()
        except OSError as error:
            raise CommandError(f"The scheduler can not start: {error}") from error
