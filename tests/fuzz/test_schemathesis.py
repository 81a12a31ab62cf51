"""Requests made from the schema, good and bad, against a real server: no 500, and no answer the schema does not tell.

A short run is part of the suite; ``make fuzz`` takes ten minutes (FUZZ_SECONDS).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from accounts.tokens import issue
from jobs.models import Job
from orgs.models import Organization, Role
from queues.models import Queue
from tests.factories import job_in, make_jobs
from tests.personas import make_key, make_member
from tests.servers import web_server

SECONDS = int(os.environ.get("FUZZ_SECONDS", "6"))
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
#: In the suite each run is the same; a long one is a new one each time.
IS_LONG = "FUZZ_SECONDS" in os.environ
SEED = ["--generation-database", "none"] if IS_LONG else ["--seed", "1", "--generation-deterministic"]
PHASES = "examples,coverage,fuzzing,stateful"
ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = [
    pytest.mark.process,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(2 * SECONDS + 180),
]


@pytest.fixture
def url(committed_queue: Queue, unused_port: int) -> Iterator[str]:
    for status in ("completed", "dead_letter", "running"):
        job_in(status, committed_queue)
    make_jobs(committed_queue, 20)
    unlimited = {f"APP_RATE_{kind}_PER_MIN": "0" for kind in ("READ", "SUBMIT", "LOGIN")}
    with web_server(unused_port, APP_LONG_POLL_MAX_MS="50", **unlimited) as address:
        yield address


def _fuzz(url: str, header: str, seconds: int, *more: str) -> None:
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{url}/api/schema", "--url", url, "-H", header,
        "--checks", CHECKS, "--phases", PHASES, "--max-time", str(seconds), "--request-timeout", "20",
        "--continue-on-failure", "--no-color", "--warnings", "off", *SEED, *more,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds * 2 + 120, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-12_000:]


def test_a_person_finds_nothing(url, committed_queue):
    organization: Organization = committed_queue.project.organization
    token = issue(make_member(organization, Role.OWNER)).access

    before = Organization.objects.count()

    _fuzz(url, f"Authorization: Bearer {token}", SECONDS)

    assert Organization.objects.count() > before  # it was let in


def test_a_machine_finds_nothing(url, committed_queue):
    # The queue of the documented examples, so that some of what is sent is sure to fit.
    Queue.objects.filter(pk=committed_queue.pk).update(name="default")
    key, before = make_key(committed_queue.project), Job.objects.count()

    _fuzz(url, f"X-API-Key: {key}", max(5, SECONDS // 2), "--include-path-regex", "^/api/(worker|jobs|queues|dead)")

    assert Job.objects.count() > before
