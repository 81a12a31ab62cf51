"""The command itself: what it says of an installation in order, its exit codes, and a database that is not there."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from jobs.doctor.examination import CHECKS
from queues.models import Queue
from tests.doctor.conftest import doctor
from tests.processes import ROOT, Process, database_url, scheduler, worker
from tests.waiting import wait_until

#: As it should be.
PRODUCTION = {
    "APP_ENV": "production", "APP_SECRET_KEY": secrets.token_hex(32), "APP_JWT_SECRET": secrets.token_hex(32),
    "APP_METRICS_TOKEN": secrets.token_hex(32), "APP_HANDLER_MODULES": "",
}  # fmt: skip


def by_command(*args: str, url: str) -> tuple[int, str]:
    """Run it as people do."""
    with Process("doctor", *args, url=url, env=PRODUCTION) as process:
        code = process.wait(120)
        return code, process.output()


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
def test_an_installation_in_order(committed_queue: Queue) -> None:
    # Of the tests' own server it is said, rightly, that it does not write to disk.
    asked = ",".join(sorted(set(CHECKS) - {"server"}))
    with scheduler() as leader, worker() as runner:
        wait_until(lambda: leader.events("leadership_taken") and runner.events("worker_started"), timeout_s=60)
        wait_until(lambda: doctor("--only", "leader")[0] == 0, timeout_s=60)
        code, said = by_command("--only", asked, "--strict", url=database_url())
    assert "0 problems, 0 warnings" in said
    assert code == 0
    assert {line.split()[1] for line in said.splitlines() if line.startswith("ok ")} == set(asked.split(","))


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
def test_an_empty_database_in_another_encoding(committed_queue: Queue) -> None:
    name = "test_doctor_ascii"
    with connection.cursor() as cursor:
        cursor.execute(f"drop database if exists {name}")
        cursor.execute(
            f"create database {name} template template0 encoding 'SQL_ASCII' locale_provider libc locale 'C'"
        )
        try:
            url = database_url().replace(f"/{connection.settings_dict['NAME']}?", f"/{name}?")
            code, said = by_command(url=url)
        finally:
            cursor.execute(f"drop database {name} with (force)")
    assert code == 1
    assert "PROBLEM  database       its encoding is SQL_ASCII" in said
    assert "can not be looked at" not in said


@pytest.mark.process
def test_no_database_at_all(unused_port: int) -> None:
    code, said = by_command("--json", url=f"postgresql://nobody:s3cret@127.0.0.1:{unused_port}/nothing")
    answer = json.loads(said[said.index("{\n") :])
    assert code == 1
    assert [(one["check"], one["level"]) for one in answer["findings"]] == [
        ("configuration", "ok"), ("database", "problem"),
    ]  # fmt: skip
    assert "can not be reached" in answer["findings"][1]["text"]
    assert "s3cret" not in said


def test_exit_codes(db: None, settings: Any) -> None:
    assert doctor("--only", "circuits")[0] == 0
    settings.LISTEN = False
    assert doctor("--only", "configuration")[0] == 0
    assert doctor("--only", "configuration", "--strict")[0] == 1
    assert doctor("--only", "leader")[0] == 1
    with pytest.raises(CommandError, match="--only: moon is no check") as caught:
        call_command("doctor", "--only", "moon")
    assert caught.value.returncode == 2


def test_lines_say_what_to_do(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        call_command("doctor", "--only", "leader,circuits")
    said = capsys.readouterr().out
    assert "PROBLEM  leader         no scheduler leads" in said
    assert "do: start manage.py runscheduler" in said
    assert "ok       circuits       in order" in said
    assert "1 problems, 0 warnings" in said


def test_help_names_every_check() -> None:
    shown = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "doctor", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert all(name in " ".join(shown.split()) for name in CHECKS)
