"""The embedded PostgreSQL with a real server: start, crash, revival, races, stop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from scheduler_project.lib.embedded.postmaster import find_postmaster
from scheduler_project.lib.embedded_pg import THROWAWAY, EmbeddedPostgres, EmbeddedPostgresError, main
from tests.sizes import long

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {**THROWAWAY, "max_connections": "20", "shared_buffers": "16MB"}
ENSURE = """
import json, sys
from pathlib import Path
from scheduler_project.lib.embedded_pg import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
server.ensure().create_database("orders")
"""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Not pytest's own folder: that is closed to the account that the server runs under for root.
    folder = Path(tempfile.mkdtemp(prefix="punctual-pg-"))
    folder.chmod(0o755)
    monkeypatch.setenv("APP_EMBEDDED_PG_HOME", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def make_server(home: Path) -> Iterator[Callable[..., EmbeddedPostgres]]:
    made: list[EmbeddedPostgres] = []

    def make(name: str = "main", settings: dict[str, str] = SETTINGS) -> EmbeddedPostgres:
        made.append(EmbeddedPostgres(ROOT, name, settings))
        return made[-1]

    yield make
    for server in made:
        server.stop("immediate")


def pid_of(server: EmbeddedPostgres) -> int | None:
    return next((pid for data in server.home.glob("data-??") if (pid := find_postmaster(data))), None)


def ask(server: EmbeddedPostgres, question: str, database: str = "orders") -> object:
    with psycopg.connect(server.url(database), autocommit=True) as connection:
        row = connection.execute(question).fetchone()
    assert row is not None
    return row[0]


def change(server: EmbeddedPostgres, statement: str) -> None:
    with psycopg.connect(server.url("orders"), autocommit=True) as connection:
        connection.execute(statement)


def test_a_first_start_gives_a_plain_role_its_own_database(make_server):
    server = make_server()

    server.ensure().create_database("orders")

    assert server.alive()
    assert ask(server, "select current_user") == "punctual"
    assert ask(server, "select rolsuper or rolcreaterole from pg_roles where rolname = current_user") is False
    assert ask(server, "select pg_get_userbyid(datdba) from pg_database where datname = 'orders'") == "punctual"
    assert ask(server, "select pg_has_role('pg_monitor', 'member') and pg_has_role('pg_signal_backend', 'member')")
    assert ask(server, "select count(*) > 0 from pg_stat_statements") is True
    assert ask(server, "show synchronous_commit") == "off"
    assert ask(server, "show timezone") == "UTC"
    change(server, "create database test_orders")  # as Django's test runner does


def test_ensure_and_create_database_again_change_nothing(make_server):
    server = make_server()
    server.ensure().create_database("orders")
    before = pid_of(server)

    make_server().ensure().create_database("orders")

    assert pid_of(server) == before


def test_the_server_has_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it(make_server):
    server = make_server().ensure()

    pid = pid_of(server)

    assert pid is not None
    assert os.getsid(pid) == os.getpgid(pid) == pid


def test_a_killed_server_is_revived_with_its_data(make_server):
    server = make_server(settings={**SETTINGS, "fsync": "on", "synchronous_commit": "on"})
    server.ensure().create_database("orders")
    change(server, "create table orders as select 1 as id")
    killed = pid_of(server)
    assert killed is not None

    os.kill(killed, signal.SIGKILL)
    server.ensure()

    assert pid_of(server) not in {None, killed}
    assert ask(server, "select count(*) from orders") == 1


@long
def test_four_processes_reviving_at_once_share_one_server(make_server, home):
    server = make_server().ensure()
    killed = pid_of(server)
    assert killed is not None
    os.kill(killed, signal.SIGKILL)

    command = [sys.executable, "-c", ENSURE, str(ROOT), "main", json.dumps(SETTINGS)]
    revivers = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [reviver.communicate(timeout=120)[1] for reviver in revivers]

    assert [reviver.returncode for reviver in revivers] == [0] * 4, said
    log = server.log.read_text()
    assert log.count("database system is ready to accept connections") == 2  # the first one, and one revival
    assert ask(server, "select 1") == 1


def test_four_processes_on_an_empty_folder_make_one_cluster(make_server):
    server = make_server()

    command = [sys.executable, "-c", ENSURE, str(ROOT), "main", json.dumps(SETTINGS)]
    starters = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [starter.communicate(timeout=120)[1] for starter in starters]

    assert [starter.returncode for starter in starters] == [0] * 4, said
    assert server.log.read_text().count("database system is ready to accept connections") == 1


def test_a_stopped_server_starts_again_with_new_settings(make_server):
    server = make_server()
    server.ensure().create_database("orders")

    assert server.stop() is True
    assert not server.alive()
    assert server.stop() is False
    make_server(settings={**SETTINGS, "max_connections": "25"}).ensure()

    assert ask(server, "show max_connections") == "25"
    before = pid_of(server)
    server.restart()
    assert pid_of(server) != before


def test_a_long_path_gets_a_short_socket_folder(make_server, home, monkeypatch):
    deep = home / ("a folder's name " * 6).strip() / ("b" * 60)
    monkeypatch.setenv("APP_EMBEDDED_PG_HOME", str(deep))
    server = make_server()

    server.ensure().create_database("orders")

    assert len(os.fsencode(server.socket_dir)) < 90
    assert ask(server, "select 1") == 1
    server.stop("immediate")
    shutil.rmtree(server.socket_dir)


def test_a_first_start_that_was_interrupted_leaves_nothing_in_the_way(make_server):
    server = make_server()
    server.ensure()
    server.stop("immediate")
    data = next(server.home.glob("data-??"))
    data.rename(data.with_name(f"{data.name}.new"))  # as far as an interrupted initdb comes

    server.ensure().create_database("orders")

    assert ask(server, "select 1") == 1


@long
def test_a_data_folder_copied_with_its_lock_file_serves_beside_the_original(make_server):
    original = make_server().ensure()
    data = next(original.home.glob("data-??"))
    lock = (data / "postmaster.pid").read_bytes()
    original.stop()
    copy = make_server("copy")
    subprocess.run(["cp", "-a", original.home, copy.home], check=True)
    original.ensure()
    live = (data / "postmaster.pid").read_bytes()
    assert live != lock
    (copy.home / data.name / "postmaster.pid").write_bytes(live)
    copy.owner.own(copy.home / data.name / "postmaster.pid", 0o600)

    copy.ensure()

    assert original.alive()
    assert copy.alive()
    assert pid_of(copy) != pid_of(original)


def test_a_server_that_can_not_start_says_why_in_one_line(make_server):
    server = make_server(settings={**SETTINGS, "shared_preload_libraries": "no_such_library"})

    with pytest.raises(EmbeddedPostgresError) as refused:
        server.ensure()

    assert 'could not start: could not access file "no_such_library"' in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_command_line_starts_tells_and_stops(home, capsys):
    try:
        assert main(["status"]) == 3
        assert main(["start", "--database", "orders"]) == 0
        assert main(["status"]) == 0
        assert main(["url", "--database", "orders"]) == 0
    finally:
        assert main(["stop"]) == 0
    assert main(["stop"]) == 0

    lines = capsys.readouterr().out.splitlines()
    url = EmbeddedPostgres(ROOT).url("orders")
    assert lines == [
        f"PostgreSQL stopped: {home}/main",
        url,
        f"PostgreSQL running: {home}/main",
        url,
        "PostgreSQL stopped: main",
        f"PostgreSQL was not running: {home}",
    ]
