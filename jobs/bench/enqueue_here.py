"""A program, run in the scratch database: submits, and writes the same rows barely, in turns so that noise hits both.

Standard input: {"queue_id", "jobs"}. Output: rows a second of each way, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from typing import Any

import django
import psycopg

django.setup()

from django.db import connection  # noqa: E402, TID251 - after the set-up; its parameters, for a session beside it

from jobs.lifecycle.submit import NewJob, submit_job, submit_jobs  # noqa: E402
from queues.models import Queue  # noqa: E402
from scheduler_project.lib.ids import uuid7  # noqa: E402

AT_ONCE, TURNS = 1_000, 10
COLUMNS = "id, project_id, queue_id, job_type, payload, status, run_at"
INSERT = f"insert into jobs ({COLUMNS}) values (%s, %s, %s, 'noop', %s, 'queued', now())"  # noqa: S608 - a constant
COPY = f"copy jobs ({COLUMNS}) from stdin"
PAYLOAD = {"customer": 4711, "kind": "invoice", "to": "someone@example.com"}


class Ways:
    """The four ways to write jobs into one queue."""

    def __init__(self, queue: Queue, session: psycopg.Connection[Any]) -> None:
        self._queue, self._session = queue, session
        self._job, self._text = NewJob(job_type="noop", payload=PAYLOAD), json.dumps(PAYLOAD)

    def bulk(self, count: int) -> None:
        """By the product, many in a call."""
        for _ in range(count // AT_ONCE):
            submit_jobs(self._queue, [self._job] * AT_ONCE)

    def copy(self, count: int) -> None:
        """By COPY, as many in a transaction."""
        for _ in range(count // AT_ONCE):
            with self._session.cursor().copy(COPY) as rows:
                for _ in range(AT_ONCE):
                    rows.write_row(
                        (uuid7(), self._queue.project_id, self._queue.pk, "noop", self._text, "queued", "now")
                    )

    def single(self, count: int) -> None:
        """By the product, one in a call."""
        for _ in range(count):
            submit_job(self._queue, self._job)

    def insert(self, count: int) -> None:
        """By a bare statement."""
        for _ in range(count):
            self._session.execute(INSERT, [uuid7(), self._queue.project_id, self._queue.pk, self._text])


def main() -> int:
    """Measure, and write the rates."""
    asked = json.load(sys.stdin)
    many = max(AT_ONCE, asked["jobs"] // TURNS // AT_ONCE * AT_ONCE)
    few = max(10, asked["jobs"] // 20 // TURNS)
    queue = Queue.objects.select_related("project").get(pk=asked["queue_id"])
    took: defaultdict[str, float] = defaultdict(float)
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as session:
        ways = Ways(queue, session)
        turns = [(ways.bulk, many), (ways.copy, many), (ways.single, few), (ways.insert, few)]
        for turn in range(TURNS + 1):
            for way, count in turns:
                began = time.perf_counter()
                way(count)
                if turn:  # the first warms up
                    took[way.__name__] += time.perf_counter() - began
    json.dump({way.__name__: TURNS * count / took[way.__name__] for way, count in turns}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
