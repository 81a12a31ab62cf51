"""The benchmarks run, answer with figures, and leave nothing behind. What the figures are is no matter for a test."""

from __future__ import annotations

import json

import psycopg
import pytest
from django.db import connection

from jobs.bench.peers.compare import is_there
from tests.processes import Process
from tests.sizes import long
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


def scratch_databases() -> set[str]:
    with psycopg.connect(**connection.get_connection_params()) as session:
        rows = session.execute("select datname from pg_database where datname like %s", ["punctual_bench_%"]).fetchall()
    return {row[0] for row in rows}


without_peers = pytest.mark.skipif(not is_there(), reason="what it compares with is not installed: make peers")


@pytest.mark.parametrize(
    "measure",
    [
        "enqueue",
        *[pytest.param(m, marks=long) for m in ("drain", "batch", "api", "live")],
        pytest.param("peers", marks=[long, without_peers]),
    ],
)
@pytest.mark.timeout(240)
def test_benchmark_answers_with_figures_and_drops_its_database(transactional_db: None, measure: str) -> None:
    before = scratch_databases()
    with Process("bench", measure, "--jobs", "500", "--json") as bench:
        assert bench.wait(200) == 0, bench.output()
        text = bench.output()
        found = json.loads(text[text.index("{\n") :])

    assert found["targets"]
    assert all({"name", "value", "target", "met"} == set(target) for target in found["targets"])
    none_is_good = {"resyncs", "lost_unsaid"}
    assert all(value > 0 for name, value in found["values"].items() if name not in none_is_good)
    if measure == "live":
        assert found["values"]["lost_unsaid"] == 0
    # Its own is gone; another test's may come and go meanwhile.
    wait_until(lambda: scratch_databases() <= before, timeout_s=150)


def test_small_and_unknown_sizes_are_refused_with_what_is_allowed(transactional_db: None) -> None:
    with Process("bench", "drain", "--jobs", "1") as bench:
        assert bench.wait(60) == 1
        assert "--jobs must be 100 or more" in bench.output()


@pytest.mark.skipif(is_there(), reason="what it compares with is installed here")
def test_what_is_not_installed_is_said_with_the_command_that_does_it(transactional_db: None) -> None:
    with Process("bench", "peers") as bench:
        assert bench.wait(100) == 1
        assert "make peers" in bench.output()
