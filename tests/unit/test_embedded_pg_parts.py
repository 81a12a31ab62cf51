"""The embedded PostgreSQL without a server: paths, messages, lock files, answers."""

from __future__ import annotations

import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from scheduler_project.lib.embedded import binaries, folders, postmaster
from scheduler_project.lib.embedded.cluster import quoted
from scheduler_project.lib.embedded.errors import EmbeddedPostgresError, cause_of, said_clearly
from scheduler_project.lib.embedded.owner import Owner
from scheduler_project.lib.embedded.probe import is_ready
from scheduler_project.lib.embedded_pg import EmbeddedPostgres

OURSELVES = Owner(os.geteuid(), os.getegid())


def test_making_the_object_touches_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("APP_EMBEDDED_PG_HOME", str(tmp_path / "none"))

    server = EmbeddedPostgres(tmp_path)

    assert (
        server.url("a b") == f"postgresql://punctual@/a%20b?host={str(server.socket_dir).replace('/', '%2F')}&port=5432"
    )
    assert server.django("orders")["NAME"] == "orders"
    assert not server.alive()
    assert not server.stop()
    assert list(tmp_path.iterdir()) == []


def test_the_data_of_a_normal_user_lies_in_the_checkout_and_that_of_root_outside(tmp_path, monkeypatch):
    monkeypatch.delenv("APP_EMBEDDED_PG_HOME", raising=False)

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert folders.base_folder(tmp_path) == tmp_path.resolve() / ".embedded-postgres"

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert folders.base_folder(tmp_path).parent == Path("/var/lib/punctual")
    assert folders.base_folder(tmp_path) != folders.base_folder(tmp_path / "other")


def test_a_socket_folder_is_beside_the_data_while_its_address_fits():
    short, long = Path("/short"), Path("/long") / ("x" * 100)

    assert folders.socket_folder(short, 7) == short / "run"
    assert folders.socket_folder(long, 7).name.startswith("punctual-7-")
    # é takes two bytes, and the limit is in bytes.
    assert folders.socket_folder(Path("/") / ("é" * 43), 7).parent == Path("/tmp")


def test_missing_folders_are_passable_for_other_accounts_under_a_strict_umask(tmp_path):
    before = os.umask(0o077)
    try:
        folders.make_passable(tmp_path / "a" / "b")
    finally:
        os.umask(before)

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o755


def test_a_folder_planted_as_a_link_is_not_ours(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert OURSELVES.owns(tmp_path / "real")
    assert not OURSELVES.owns(tmp_path / "link")
    assert not OURSELVES.owns(tmp_path / "missing")
    assert not Owner(OURSELVES.uid + 1, 0).owns(tmp_path / "real")


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.EROFS, "can not use {0}: Read-only file system. Set APP_EMBEDDED_PG_HOME"),
        (errno.EACCES, "can not use {0}: Permission denied. Set APP_EMBEDDED_PG_HOME"),
        (errno.ENOSPC, "No space left for the embedded PostgreSQL in {0}"),
        (errno.ENAMETOOLONG, "failed at {0}: File name too long"),
    ],
)
def test_refusals_of_the_system_become_one_line(tmp_path, number, expected):
    with pytest.raises(EmbeddedPostgresError) as refused, said_clearly(tmp_path):
        raise OSError(number, os.strerror(number))

    assert expected.format(tmp_path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("", "it gave no reason"),
        ("all is well\nso far", "so far"),
        (
            "creating …\ninitdb: error: could not create directory: nope\ninitdb: removing",
            "could not create directory: nope",
        ),
        (
            "2026-11-29 UTC [7] FATAL:  lock file exists\n2026 UTC [7] HINT:  Is another one running?",
            "lock file exists (Is another one running?)",
        ),
        ("LOG: x\nFATAL:  first\nFATAL:  second", "first"),
    ],
)
def test_the_cause_is_picked_out_of_a_programs_output(output, cause):
    assert cause_of(output) == cause


def test_values_are_quoted_for_the_configuration_file():
    assert quoted(r"it's C:\x") == r"'it''s C:\\x'"


def test_no_programs_anywhere_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(binaries, "_find_wheel", lambda: None)
    monkeypatch.setattr(binaries, "_DEBIAN", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(EmbeddedPostgresError, match="APP_DATABASE_URL"):
        binaries.find_binaries(OURSELVES, tmp_path)


def test_without_the_wheel_the_newest_server_of_the_machine_is_taken(tmp_path, monkeypatch):
    for major in ("9", "15", "17", "old"):
        folder = tmp_path / major / "bin"
        folder.mkdir(parents=True)
        for program in ("postgres", "pg_ctl"):
            (folder / program).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {major}.2 (Debian)'\n")
            (folder / program).chmod(0o755)
    monkeypatch.setattr(binaries, "_find_wheel", lambda: None)
    monkeypatch.setattr(binaries, "_DEBIAN", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))

    found = binaries.find_binaries(OURSELVES, tmp_path)

    assert found == binaries.Binaries(tmp_path / "17" / "bin", 17)
    assert not found.has_statement_statistics


def test_a_server_too_old_is_refused(tmp_path, monkeypatch):
    (tmp_path / "postgres").write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 13.4'\n")
    (tmp_path / "postgres").chmod(0o755)
    monkeypatch.setattr(binaries, "_find_wheel", lambda: None)
    monkeypatch.setattr(binaries, "_find_on_machine", lambda: tmp_path)

    with pytest.raises(EmbeddedPostgresError, match=r"13 .* too old: 15 or newer"):
        binaries.find_binaries(OURSELVES, tmp_path)


@pytest.mark.parametrize("first_line", ["999999999", "-999999999", "", "garbage"])
def test_lock_files_of_nobody_are_dropped(tmp_path, first_line):
    lock, socket_lock = tmp_path / "postmaster.pid", tmp_path / ".s.PGSQL.5432.lock"
    lock.write_text(f"{first_line}\n{tmp_path}\n")
    socket_lock.write_text(f"{first_line}\n")

    assert postmaster.find_postmaster(tmp_path) is None
    postmaster.drop_stale_locks(tmp_path, socket_lock)

    assert not lock.exists()
    assert not socket_lock.exists()


def test_a_pid_that_another_program_has_now_is_nobody(tmp_path):
    (tmp_path / "postmaster.pid").write_text(f"{os.getpid()}\n")

    assert postmaster.find_postmaster(tmp_path) is None
    assert postmaster.stop_postmaster(tmp_path, "fast", 1) is False


@pytest.mark.parametrize(
    ("answer", "is_up"),
    [
        (b"R\0\0\0\x08\0\0\0\0", True),
        (b"E\0\0\0\x30SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0", False),
        (b"E\0\0\0\x30SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0", True),
        (b"", False),
    ],
)
def test_only_a_server_that_takes_connections_is_ready(tmp_path, monkeypatch, answer, is_up):
    monkeypatch.chdir(tmp_path)  # an address of a few bytes, however deep the folder
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        listener.listen()

        def reply() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1024)

        server = threading.Thread(target=reply)
        server.start()
        assert is_ready(Path("s"), "postgres") is is_up
        server.join()


def test_no_socket_and_a_socket_of_the_dead_are_not_ready(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")

    assert not is_ready(Path("missing"), "postgres")
    assert not is_ready(Path("s"), "postgres")
