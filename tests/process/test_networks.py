"""Networks of our own: what is in one is cut off, reached by a cable, and gone with its last process."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.prove.stage.vanishing import vanish
from scheduler_project.lib.networks import Host, NotAllowed, enter
from tests.waiting import wait_until

A, B, PORT = "198.18.0.1", "198.18.0.2", 5432


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts with a cable between them."""
    if os.geteuid() != 0:
        pytest.skip("without root all later tests of this process would run in a user namespace")
    try:
        with Host() as a, Host() as b:
            a.connect(b, A, B)
            yield a, b
    except NotAllowed as error:
        pytest.skip(str(error))


def serve(host: Host) -> socket.socket:
    return host.call(lambda: socket.create_server((A, PORT)))


def call(host: Host) -> str:
    """The own address of a call from a host."""

    def connect() -> str:
        with socket.create_connection((A, PORT), timeout=2) as session:
            return str(session.getsockname()[0])

    return host.call(connect)


def test_a_host_is_reached_by_its_cable_alone(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    with serve(a):
        assert call(b) == B
        b.pull()
        with pytest.raises(OSError, match=r"unreachable|timed out"):
            call(b)
        b.plug()
        assert call(b) == B
    assert "wire" not in dict(socket.if_nameindex()).values(), "ours is as it was"


def test_a_process_moves_in_and_a_network_is_gone_with_its_last_one(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    with serve(a):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                enter(b.path)
                with socket.create_connection((A, PORT), timeout=2):
                    code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    place = Path(b.path)
    assert place.exists()
    b.close()
    wait_until(lambda: not place.exists())  # a thread is joined a moment before the kernel has done with it


class Stage:
    """Takes down what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def not_staged(self, text: str) -> None:
        self.said.append(text)


def test_where_no_network_can_be_had_the_proof_leaves_its_figures_out_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    stage = Stage()

    assert vanish(stage) == []  # type: ignore[arg-type]
    assert stage.said == ["a host that vanishes: the program ip (iproute2) is not there"]
