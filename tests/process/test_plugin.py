"""The pytest plugin, in a project of a user's own: its own folder, its own conftest.py, its own pytest."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.processes import ROOT, database_url
from tests.sizes import long

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

CONFTEST = 'pytest_plugins = ["jobs.testing.plugin"]\n'
HANDLERS = """
from jobs.handlers import handler

@handler("mine.double")
def double(ctx, n: int):
    ctx.log(f"doubling {n}")
    if ctx.attempt == 1:
        raise RuntimeError("not yet")
    return 2 * n
"""
TESTS = """
import handlers_of_mine
from jobs.lifecycle.submit import NewJob, submit_job

def test_inline(run_inline):
    made = run_inline(handlers_of_mine.double, {"n": 2}, attempt=2)
    assert (made.result, made.messages) == (4, ["doubling 2"])

def test_drained(punctual_queue, drain, time_passes, assert_submitted):
    submit_job(punctual_queue, NewJob(job_type="mine.double", payload={"n": 2}))
    assert_submitted("mine.double", payload={"n": 2}, count=1)
    assert [ran.status for ran in drain(punctual_queue)] == ["scheduled"]
    time_passes(3_600)
    assert [ran.result for ran in drain(punctual_queue)] == [4]
"""


@long
def test_a_project_of_its_own_uses_the_fixtures(tmp_path):
    for name, text in {"conftest.py": CONFTEST, "handlers_of_mine.py": HANDLERS, "test_mine.py": TESTS}.items():
        (tmp_path / name).write_text(text)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("APP_", "PYTEST_"))}
    paths = os.pathsep.join([str(ROOT), str(tmp_path)])

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path),
         "--ds", "scheduler_project.settings", str(tmp_path)],
        env={**env, "APP_DATABASE_URL": database_url(), "PYTHONPATH": paths}, cwd=tmp_path, timeout=120,
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
