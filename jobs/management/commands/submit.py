"""manage.py submit: put a job into a queue, and wait for its end if asked."""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime

from jobs.lifecycle.submit import NewJob, submit_job
from jobs.models import Job
from jobs.states import TERMINAL, JobStatus
from queues.selectors import find_queue_by_path
from scheduler_project.lib.errors import DomainError

#: What the exit code says with --wait: 0 completed, 1 a wrong call, then:
EXIT_CODES = {JobStatus.FAILED: 2, JobStatus.DEAD_LETTER: 3, JobStatus.CANCELLED: 4}
EXIT_TIMEOUT = 5
FIRST_LOOK_S, LONGEST_LOOK_S = 0.01, 0.5


class Command(BaseCommand):
    help = (
        "Submit a job. With --wait the exit code tells the outcome: "
        "0 completed, 2 failed, 3 dead letter, 4 cancelled, 5 not ended in time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("job_type")
        parser.add_argument("--queue", required=True, help="organization/project/queue, by their slugs")
        parser.add_argument("--payload", default="{}", help="JSON; - reads it from standard input")
        parser.add_argument("--priority", type=int, default=0)
        parser.add_argument("--run-at", help="2026-12-24T18:00:00Z")
        parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS")
        parser.add_argument("--idempotency-key")
        parser.add_argument("--concurrency-key", help="jobs with the same key do not run at once")
        parser.add_argument("--timeout", type=float, metavar="SECONDS", help="how long one attempt may take")
        parser.add_argument("--start-deadline", metavar="TIME", help="not begun by then, it is cancelled")
        parser.add_argument("--deadline", metavar="TIME", help="no attempt begins after it")
        parser.add_argument("--max-attempts", type=int)
        parser.add_argument("--wait", nargs="?", const=300.0, type=float, metavar="SECONDS", help="300 if not given")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.EMBEDDED is not None and not settings.EMBEDDED.alive():
            raise CommandError("The database is not running. Start the demo (make demo) or set APP_DATABASE_URL.")
        queue = find_queue_by_path(options["queue"])
        if queue is None:
            raise CommandError(f"--queue: there is no {options['queue']!r}; name it as organization/project/queue.")
        job = NewJob(
            job_type=options["job_type"],
            payload=_payload(options["payload"]),
            priority=options["priority"],
            run_at=_time("--run-at", options["run_at"]),
            start_deadline=_time("--start-deadline", options["start_deadline"]),
            deadline=_time("--deadline", options["deadline"]),
            delay_s=options["delay"],
            idempotency_key=options["idempotency_key"],
            concurrency_key=options["concurrency_key"],
            timeout_s=options["timeout"],
            max_attempts=options["max_attempts"],
        )
        try:
            submitted = submit_job(queue, job)
        except DomainError as error:
            raise CommandError(error.message) from error
        note = "" if submitted.is_new else " (the first job of this idempotency key)"
        self.stdout.write(f"{submitted.id} {submitted.status}{note}")
        if options["wait"] is not None:
            self._wait(submitted.id, options["wait"])

    def _wait(self, job_id: Any, limit_s: float) -> None:
        deadline, pause_s = time.monotonic() + limit_s, FIRST_LOOK_S
        while True:
            job = Job.objects.without_payload().get(pk=job_id)
            if job.status in TERMINAL:
                break
            if time.monotonic() >= deadline:
                self.stderr.write(f"{job_id} is still {job.status} after {limit_s:g} s")
                raise SystemExit(EXIT_TIMEOUT)
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LONGEST_LOOK_S)
        self.stdout.write(f"{job_id} {job.status} after {job.attempt_count} attempt(s)")
        if job.error_message:
            self.stderr.write(job.error_message)
        if job.result is not None:
            self.stdout.write(json.dumps(job.result))
        if job.status != JobStatus.COMPLETED:
            raise SystemExit(EXIT_CODES[JobStatus(job.status)])


def _payload(text: str) -> Any:
    try:
        return json.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"--payload is not JSON: {error}") from error


def _time(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise CommandError(f"{option}: {text!r} is not a time with a zone, such as 2026-12-24T18:00:00Z.")
    return moment
