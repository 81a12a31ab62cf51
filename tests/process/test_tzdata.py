"""Times come from the pinned time-zone data, also on a host whose own files are years old."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pytest

from jobs.models import ScheduledJob
from jobs.services.schedules import create_schedule
from queues.models import Queue
from scheduler_project.lib.tzdata import tzdata_version
from tests.processes import ROOT, scheduler
from tests.servers import web_server
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

ZONE = "America/Vancouver"
AFTER, RIGHT = "2026-11-29T00:00:00Z", "2026-11-29T16:00:00Z"
#: What data of 2025 says: they still knew winter time there.
OF_2025 = "Etc/GMT+8"


@pytest.fixture
def old_host(tmp_path: Path) -> dict[str, str]:
    """The environment of a host with time-zone files of 2025."""
    place = tmp_path / "zoneinfo" / ZONE
    place.parent.mkdir(parents=True)
    place.write_bytes(files("tzdata").joinpath("zoneinfo", OF_2025).read_bytes())
    return {"PYTHONTZPATH": str(tmp_path / "zoneinfo")}


def test_the_host_is_believed_by_python_but_not_by_us(old_host: dict[str, str]) -> None:
    nine = f"datetime(2026, 11, 29, 9, tzinfo=ZoneInfo({ZONE!r}))"
    hour = f"from datetime import *; from zoneinfo import *; print({nine}.astimezone(UTC).hour)"
    plain = subprocess.run(
        [sys.executable, "-c", hour], env={**os.environ, **old_host}, capture_output=True, text=True, check=True
    )
    assert plain.stdout.strip() == "17", "the test's old host is not old"

    command = [str(ROOT / "manage.py"), "cron", "preview", "0 9 * * *", "--tz", ZONE, "--after", AFTER]
    asked = subprocess.run(
        [sys.executable, *command, "--count", "1", "--json"],
        env={**os.environ, **old_host}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(asked.stdout)
    assert found["fires"][0]["at"] == RIGHT
    assert found["tzdata"] == tzdata_version()


def test_scheduler_and_health_page_use_the_pinned_data(
    committed_queue: Queue, old_host: dict[str, str], unused_port: int
) -> None:
    schedule = create_schedule(
        committed_queue, name="nine", cron_expression="0 9 * * *", timezone=ZONE, job_type="noop"
    )
    right = schedule.next_run_at
    assert right is not None
    # Stored by an installation of last year.
    ScheduledJob.objects.update(next_run_at=right + timedelta(hours=1), tzdata_version="2025.2")

    with scheduler(env=old_host):
        wait_until(lambda: ScheduledJob.objects.get().tzdata_version == tzdata_version(), timeout_s=60)
    assert ScheduledJob.objects.get().next_run_at == right
    assert right.astimezone(UTC).hour == 16 or right < datetime(2026, 11, 1, tzinfo=UTC)

    with web_server(unused_port, **old_host) as url:
        said = json.load(urllib.request.urlopen(f"{url}/readyz", timeout=10))
    assert said["tzdata"] == tzdata_version()
