"""The proofs: each fails when its guard is taken away, and holds with it.

Some of them in the suite, for the sake of its time; by environment: PROVE=claim,crash tries those, PROVE=all tries all.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from jobs.models import ProofResult
from jobs.prove.registry import PROOFS
from jobs.prove.runner import prove
from scheduler_project.lib.embedded_pg import EmbeddedPostgres
from scheduler_project.lib.scratch import Scratch, scratch_database
from tests.processes import Process, is_alive
from tests.sizes import IS_FULL, long
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]

#: Smaller than --quick where that shows the same.
SMALL = {
    "claim": {"jobs": 900, "workers": 3},
    "crash": {"jobs": 150, "kills": 2},
    "fencing": {"rounds": 1},
    "exactly-once": {"jobs": 80, "kills": 1},
    "shutdown": {"jobs": 60, "deploys": 1},
    "failover": {"kills": 1},
    "limits": {"jobs": 120},
    "cron": {"windows": 60},
    "misfire": {"schedules": 2},
    "dag": {"graphs": 8},
    "batch": {"batches": 4},
    "latency": {"jobs": 20},
    "breaker": {"jobs": 60, "workers": 2, "down_s": 5},
    "egress": {"open_calls": 2},
    "fairness": {"single": 10},
    "explain": {"states": 60},
    "redrive": {"letters": 1_600, "kills": 1, "careful": 40, "paced": 20},
    "tenancy": {"strangers": 2},
    "rot": {"history": 5_000, "future": 1_000},
}
ASKED = os.environ.get("PROVE", "claim,cron,misfire,batch,egress" if IS_FULL else "claim,misfire,batch")
CHOSEN = [name for name in PROOFS if ASKED == "all" or name in ASKED.split(",")]
GUARDS = [(name, guard) for name in CHOSEN for guard in PROOFS[name].breaks]


@pytest.fixture(scope="module")
def base(django_db_setup: None) -> Iterator[Scratch]:
    """A scratch database that all tests here take copies of."""
    before = settings.DATABASE_DIRECT
    settings.DATABASE_DIRECT = {**before, "NAME": connection.settings_dict["NAME"]}
    try:
        with scratch_database("prove") as made:
            yield made
    finally:
        settings.DATABASE_DIRECT = before


def sizes_of(name: str) -> dict[str, int]:
    return {size: value.quick for size, value in PROOFS[name].sizes.items()} | SMALL.get(name, {})


@pytest.mark.parametrize(("name", "guard"), GUARDS)
def test_without_its_guard_the_proof_fails(base: Scratch, name: str, guard: str) -> None:
    found = prove(PROOFS[name], base, sizes_of(name), guard=guard, say=print)
    if found.is_skipped:
        pytest.skip(found.reason)
    print(found)
    assert not found.is_met
    assert "broke off" not in found.reason, "it must fail by what it counts, not by an error of its own"


@pytest.mark.skipif(not IS_FULL and "PROVE" not in os.environ, reason="CI runs the proofs; FULL=1 runs this")
@pytest.mark.parametrize("name", CHOSEN if "PROVE" in os.environ else ["claim"])
def test_the_promise_holds(base: Scratch, name: str) -> None:
    found = prove(PROOFS[name], base, sizes_of(name), say=print)
    if found.is_skipped:
        pytest.skip(found.reason)
    assert found.is_met, found


def scratch_databases() -> set[str]:
    with psycopg.connect(**connection.get_connection_params()) as session:
        rows = session.execute("select datname from pg_database where datname like 'punctual_prove_%'").fetchall()
    return {row[0] for row in rows}


def children_of(pid: int) -> set[int]:
    """The processes of the groups of a process's children."""
    import psutil

    return {child.pid for child in psutil.Process(pid).children(recursive=True)}


@long
def test_the_command_says_what_it_found_and_keeps_it(transactional_db: None) -> None:
    with Process("prove", "cron", "--quick", "--set", "windows=5", "--json") as command:
        assert command.wait(200) == 0, command.output()
        text = command.output()
        found: dict[str, Any] = json.loads(text[text.index("{\n") :])

    [proof] = found["proofs"]
    assert (proof["name"], proof["met"], proof["sizes"]["windows"]) == ("cron", True, 5)
    kept = ProofResult.objects.get()
    assert (kept.name, kept.verdict) == ("cron", "met")
    assert kept.command == "manage.py prove cron --quick --set windows=5"
    assert [figure["name"] for figure in kept.figures] == [figure["name"] for figure in proof["figures"]]


@long
def test_a_missed_bar_is_exit_code_1_and_a_broken_run_is_not_kept(transactional_db: None) -> None:
    with Process("prove", "cron", "--quick", "--set", "windows=60", "--break", "clock_changes") as command:
        assert command.wait(200) == 1, command.output()
        assert "missed: cron" in command.output()
    assert not ProofResult.objects.exists()


@pytest.mark.parametrize(
    ("name", "moment", "number"),
    [
        pytest.param("crash", "workers were killed", signal.SIGINT, marks=long),
        ("crash", "workers were killed", signal.SIGTERM),
        pytest.param("failover", "host 1 of", signal.SIGTERM, marks=long),
        pytest.param("database", "fail-over: ", signal.SIGTERM, marks=long),
    ],
)
def test_interrupted_it_leaves_nothing_behind(
    transactional_db: None, name: str, moment: str, number: signal.Signals
) -> None:
    before = scratch_databases()
    with Process("prove", name, "--quick") as command:
        wait_until(lambda: moment in command.output(), timeout_s=200)
        started = children_of(command.pid)
        assert len(started) >= 4
        command.send(number)

        assert command.wait(60) == 130, command.output()
    assert not [pid for pid in started if is_alive(pid)]
    wait_until(lambda: scratch_databases() <= before, timeout_s=60)
    for own in ("prove-failover", "prove-database", "prove-replica"):
        assert not EmbeddedPostgres(settings.BASE_DIR, own).home.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Name proofs, or say --all. There are: claim, "),
        (["nothing"], "There is no proof 'nothing'. There are: claim, "),
        (["claim", "--all"], "Name proofs, or say --all"),
        (["claim", "--set", "jobs=many"], "--set jobs=many: a number from 1 to 100,000,000 is needed"),
        (["claim", "--set", "bogus=1"], "there is no size 'bogus'. There are: jobs, workers"),
        (["claim", "--break", "bogus"], "--break is for one proof: row_locks"),
    ],
)
def test_bad_arguments_are_exit_code_2_with_what_is_allowed(arguments: list[str], says: str) -> None:
    with pytest.raises(CommandError) as error:
        call_command("prove", *arguments)
    assert error.value.returncode == 2
    assert says in str(error.value)
