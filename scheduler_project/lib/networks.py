"""Networks of our own, as if there were other machines: threads that live in one, and a cable between two. Linux only.

Nothing of the machine's own network is touched, and nothing is left behind: the kernel takes a network and its cable
away with the last process in it, however that ends.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

T = TypeVar("T")

_NEW_USER, _NEW_NETWORK = 0x1000_0000, 0x4000_0000
_CAN_CHANGE_NETWORKS, _CAN_ENTER_NAMESPACES = 12, 21
_CAPABILITIES_VERSION = 0x2008_0522
_PR_AMBIENT, _PR_AMBIENT_RAISE = 47, 2
_WIRE, _MASK = "wire", 30
_LIMIT_S = 10


class NotAllowed(Exception):
    """A network of our own can not be had here; says why."""


class Host:
    """A thread in a network of its own; what it starts is there too. It sees the same files and processes as we do.

    Raises:
        NotAllowed: no network can be made here.
    """

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise NotAllowed("networks of their own are Linux's")
        if shutil.which("ip") is None:
            raise NotAllowed("the program ip (iproute2) is not there")
        _become_allowed()
        self._thread = ThreadPoolExecutor(1)
        try:
            self.path = self.call(_move_out)
            self.ip("link", "set", "lo", "up")
        except NotAllowed:
            self.close()
            raise

    def call(self, work: Callable[[], T]) -> T:
        """Let the thread do something; what it answers or raises."""
        return self._thread.submit(work).result()

    def ip(self, *arguments: str) -> None:
        """Change something in its network.

        Raises:
            NotAllowed: it is refused.
        """
        ended = self.call(
            lambda: subprocess.run(
                ["ip", *arguments],  # noqa: S607 - where it lies differs; it was looked for
                capture_output=True,
                text=True,
                check=False,
                timeout=_LIMIT_S,
            )
        )
        if ended.returncode:
            raise NotAllowed(f"ip {' '.join(arguments[:2])}: {ended.stderr.strip() or 'refused'}")

    def connect(self, other: Host, ours: str, theirs: str) -> None:
        """Lay a cable to another host; both addresses are of one network of four."""
        self.ip("link", "add", "name", _WIRE, "type", "veth", "peer", "name", _WIRE, "netns", other.path)
        for host, address in ((self, ours), (other, theirs)):
            host.ip("addr", "add", f"{address}/{_MASK}", "dev", _WIRE)
            host.plug()

    def plug(self) -> None:
        """Let its end of the cable work."""
        self.ip("link", "set", _WIRE, "up")

    def pull(self) -> None:
        """Let what comes and goes by the cable vanish; nobody is told."""
        self.ip("link", "set", _WIRE, "down")

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def enter(path: str) -> None:
    """Move this process, which must have one thread, into a host's network.

    Args:
        path: ``Host.path``.

    Raises:
        OSError: refused.
    """
    users = Path(path).with_name("user")
    # Whoever made the namespace of users that the network belongs to may enter that first.
    kinds = [] if users.samefile("/proc/self/ns/user") else [(users, _NEW_USER)]
    for place, kind in [*kinds, (Path(path), _NEW_NETWORK)]:
        with place.open("rb") as opened:
            _ask("setns", opened.fileno(), kind)


def _move_out() -> str:
    try:
        _ask("unshare", _NEW_NETWORK)
    except OSError as error:
        raise NotAllowed(f"a network namespace is refused: {error.strerror}") from error
    return f"/proc/{os.getpid()}/task/{threading.get_native_id()}/ns/net"


def _become_allowed() -> None:
    """Without root: become the master of a namespace of users, in which this process stays who it is."""
    if os.geteuid() == 0 or _is_master():
        return
    user, group = os.geteuid(), os.getegid()
    try:
        _ask("unshare", _NEW_USER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        _hand_on()
    except OSError as error:
        raise NotAllowed(f"neither root nor a user namespace: {error.strerror}") from error


def _is_master() -> bool:
    """Has this process, which is not root, the right already? Then it was here before."""
    status = Path("/proc/self/status").read_text()
    allowed = int(status.partition("CapEff:")[2].split()[0], 16)
    return all(allowed >> right & 1 for right in (_CAN_CHANGE_NETWORKS, _CAN_ENTER_NAMESPACES))


def _hand_on() -> None:
    """Programs that are started have the two rights as well; they end at the namespace of users."""
    rights = (1 << _CAN_CHANGE_NETWORKS) | (1 << _CAN_ENTER_NAMESPACES)
    sets = struct.pack("6I", rights, rights, rights, 0, 0, 0)
    _ask("capset", struct.pack("Ii", _CAPABILITIES_VERSION, 0), sets)
    for right in (_CAN_CHANGE_NETWORKS, _CAN_ENTER_NAMESPACES):
        _ask("prctl", *map(ctypes.c_ulong, (_PR_AMBIENT, _PR_AMBIENT_RAISE, right, 0, 0)))


def _ask(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
