"""manage.py runworker: claim jobs and run them until told to stop."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.handlers.registry import HandlerProblem
from jobs.metrics_port import add_metrics_port, checked_port
from jobs.worker import runtime
from jobs.worker.config import WorkerConfig
from jobs.worker.several import run_several
from queues.selectors import find_queue_by_path

MOST_PROCESSES = 64


class Command(BaseCommand):
    help = "Claim jobs and run them. SIGTERM drains; a second one gives everything back at once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--queues", default="", help="org/project/queue, separated by commas; all if not given")
        parser.add_argument("--concurrency", type=int, default=settings.WORKER_MAX_CONCURRENCY)
        parser.add_argument("--processes", type=int, default=1, help="so many workers, each with its own concurrency")
        add_metrics_port(parser)
        mode = parser.add_mutually_exclusive_group()
        mode.add_argument("--once", action="store_true", help="run one job and stop")
        mode.add_argument("--drain", action="store_true", help="stop when no queued job is left")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["concurrency"] <= 1_000:
            raise CommandError("--concurrency must be from 1 to 1000")
        if not 1 <= options["processes"] <= MOST_PROCESSES:
            raise CommandError(f"--processes must be from 1 to {MOST_PROCESSES}")
        if options["processes"] > 1 and (options["once"] or options["drain"]):
            raise CommandError("--once and --drain are for one process")
        names = tuple(name.strip() for name in options["queues"].split(",") if name.strip())
        queue_ids = self._ids(names) if names else None
        port = checked_port(options["metrics_port"])
        if options["processes"] > 1:
            arguments = ["--queues", options["queues"], "--concurrency", str(options["concurrency"])]
            raise SystemExit(run_several(options["processes"], arguments, port))
        config = WorkerConfig(
            queue_ids=queue_ids,
            queue_names=names,
            seats=1 if options["once"] else options["concurrency"],
            mode="once" if options["once"] else "drain" if options["drain"] else "serve",
            metrics_port=port,
        )
        try:
            runtime.run(config, listen=settings.LISTEN)
        except HandlerProblem as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"The worker can not start: {error}") from error

    def _ids(self, names: tuple[str, ...]) -> tuple[str, ...]:
        found = {name: find_queue_by_path(name) for name in names}
        if missing := [name for name, queue in found.items() if queue is None]:
            raise CommandError(f"There is no queue {missing[0]!r}; name queues as organization/project/queue.")
        return tuple(str(queue.pk) for queue in found.values() if queue is not None)
