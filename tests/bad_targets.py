"""Web servers on loopback that play every trick: which ones there are, and how a call to each must end.

A target's name is the first column of the table in docs/handlers/webhook.md, its outcome the second and third.
"""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

#: What a server says: bytes, or seconds of silence.
Act = Iterator[bytes | float]
RESET = -1.0
#: The address of this machine that stands for the world outside: the only one that tests open.
OUTSIDE = "127.0.0.3"
DONE = "completed"

OK = b"HTTP/1.1 200 OK\r\n"
KIB = 1024


@dataclass(frozen=True)
class Target:
    """One bad target.

    Attributes:
        outcome: the code the attempt ends with; ``completed`` if the job does.
        is_final: no other attempt is made.
        play: what the server says after it has read the head of the request; then it waits for the other side to go.
        url: for targets that need no server; ``{private}`` is the port of the server that must never be reached.
        is_deaf: the server says its piece before it reads anything.
        tls: the certificate the server shows, empty for none.
        scheme: what is spoken to it.
        payload: more fields of the job's payload.
    """

    name: str
    outcome: str
    is_final: bool = False
    play: Callable[[], Act] | None = None
    url: str = ""
    is_deaf: bool = False
    tls: str = ""
    scheme: str = "http"
    payload: dict[str, Any] = field(default_factory=dict)


def says(*parts: bytes | float) -> Callable[[], Act]:
    """A server that says these and falls silent."""
    return lambda: iter(parts)


def then_for_ever(*parts: bytes | float, again: bytes, pause_s: float = 0.0) -> Callable[[], Act]:
    """A server that says ``again`` without end, fast or slowly."""

    def play() -> Act:
        yield from parts
        for _ in itertools.count():
            yield again
            if pause_s:
                yield pause_s

    return play


def closes(*parts: bytes | float) -> Callable[[], Act]:
    """A server that says these and hangs up."""
    return lambda: itertools.chain(parts, [b""])


def redirects(status: int, location: str) -> Callable[[], Act]:
    """A server that sends the caller elsewhere."""
    return says(f"HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())


def answer(body: bytes, *headers: bytes) -> bytes:
    """A whole answer."""
    lines = b"".join(header + b"\r\n" for header in headers)
    return OK + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


LINE = b"X-A: " + b"a" * 200 + b"\r\n"
LATER = b"HTTP/1.1 100 Continue\r\n\r\n" * 99
BOMB = gzip.compress(bytes(20 * KIB * KIB))
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

SLOW = [
    Target("says nothing", "timeout", play=says()),
    Target("headers byte by byte", "timeout", play=then_for_ever(OK + b"X: ", again=b"x", pause_s=0.02)),
    Target("body byte by byte", "timeout", play=then_for_ever(OK + b"\r\n", again=b"x", pause_s=0.02)),
    Target("body that stops", "timeout", play=says(OK + b"Content-Length: 100\r\n\r\nabc")),
    Target("chunks that stop", "timeout", play=says(CHUNKED + b"5\r\nab")),
    Target("does not read what it is sent", "timeout", play=says(3.0), is_deaf=True, payload={"body": "x" * 1_000_000}),
    Target("TLS handshake that never ends", "timeout", play=says(), is_deaf=True, scheme="https"),
    Target(
        "TLS handshake byte by byte", "timeout", is_deaf=True, scheme="https",
        play=then_for_ever(b"\x16\x03\x03\x40\x00\x02\x00\x3f\x00", again=b"x", pause_s=0.02),
    ),
    Target("silence after the TLS handshake", "timeout", play=says(), tls="good", scheme="https"),
]  # fmt: skip
ENDLESS = [
    Target("headers without end", "bad_answer", play=then_for_ever(OK, again=LINE)),
    Target("one header of 300 KB", "bad_answer", play=says(OK + b"X: " + b"x" * 300_000 + b"\r\n\r\n")),
    Target("interim answers without end", "bad_answer", play=then_for_ever(again=LATER)),
    Target("body without end", DONE, play=then_for_ever(OK + b"\r\n", again=b"x" * 65_536)),
    Target("10 GB announced and sent", DONE, play=then_for_ever(
        OK + b"Content-Length: 10000000000\r\n\r\n", again=b"x" * 65_536)),
    Target("chunks of one byte without end", DONE, play=then_for_ever(CHUNKED, again=b"1\r\nx\r\n" * 999)),
    Target("chunk extensions without end", "bad_answer", play=then_for_ever(
        CHUNKED, again=b"1;" + b"e" * 50_000 + b"\r\nx\r\n")),
    Target("one chunk of 2^64 bytes", DONE, play=then_for_ever(
        CHUNKED + b"ffffffffffffffff\r\n", again=b"x" * 65_536)),
    Target("trailers without end", "bad_answer", play=then_for_ever(CHUNKED + b"0\r\n", again=LINE)),
    Target("gzip bomb", DONE, play=says(answer(BOMB, b"Content-Encoding: gzip"))),
    Target("gzip without end", DONE, play=then_for_ever(OK + b"Content-Encoding: gzip\r\n\r\n", again=BOMB)),
]  # fmt: skip
BROKEN = [
    Target("reset in mid-body", "connection_lost", play=says(OK + b"Content-Length: 100\r\n\r\nabc", 0.05, RESET)),
    Target("reset before the headers", "connection_lost", play=says(RESET)),
    Target("hangs up before the headers", "bad_answer", play=closes()),
    Target("hangs up in mid-headers", "bad_answer", play=closes(OK + b"X-A: ")),
    Target("hangs up in mid-body", "bad_answer", play=closes(OK + b"Content-Length: 100\r\n\r\nabc")),
    Target("hangs up in mid-chunk", "bad_answer", play=closes(CHUNKED + b"5\r\nab")),
    Target("garbage for chunks", "bad_answer", play=says(CHUNKED + b"zz\r\nnonsense\r\n")),
    Target("negative length", "bad_answer", play=says(OK + b"Content-Length: -5\r\n\r\n")),
    Target("two lengths", "bad_answer", play=says(OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!")),
    Target("unknown coding of transfer", "bad_answer", play=says(OK + b"Transfer-Encoding: secret\r\n\r\n")),
    Target("no status line (HTTP/0.9)", "bad_answer", play=closes(b"<html>hello</html>\r\n")),
    Target("HTTP/2 where HTTP/1.1 was asked", "bad_answer", play=says(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
    Target("status that is no number", "bad_answer", play=says(b"HTTP/1.1 abc OK\r\n\r\n")),
    Target("line break inside of a header", "bad_answer", play=says(OK + b"X-A: a\rX-B: b\r\n\r\n")),
    Target("null byte inside of a header", "bad_answer", play=says(OK + b"X-A: a\0b\r\n\r\n")),
    Target("nobody listens", "connect_failed", url="http://127.0.0.3:{unused}/"),
    Target("no such name", "dns_failed", url="http://nowhere.invalid:{private}/"),
]  # fmt: skip
ODD = [
    Target("status 999", "bad_status", play=says(b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n")),
    Target("switches protocols", "bad_answer", play=says(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nx")),
    Target("204 with a body", DONE, play=says(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello")),
    Target("body that is no UTF-8", DONE, play=says(answer(
        b"\xff\xfe\xc3(", b"Content-Type: text/plain; charset=utf-8"))),
    Target("null bytes in the body", DONE, play=says(answer(b"a\0b\0"))),
    Target("headers that are no ASCII", DONE, play=says(answer(b"hi", b"X-A: \xe4\xf6\xfc \xff"))),
    Target("400 headers, 200 cookies", DONE, play=says(answer(
        b"hi", *[b"X-%d: x" % n for n in range(400)], *[b"Set-Cookie: a%d=b" % n for n in range(200)]))),
    Target("keeps the connection open", DONE, play=says(answer(b"hi", b"Connection: keep-alive"))),
    Target("a second answer behind the first", DONE, play=says(answer(b"hi") + b"HTTP/1.1 500 No\r\n\r\n")),
    Target("asks to come back in 30,000 years", "bad_status", play=says(
        b"HTTP/1.1 503 Busy\r\nRetry-After: 999999999999\r\nContent-Length: 0\r\n\r\n")),
]  # fmt: skip
TLS = [
    Target("plain HTTP where TLS was asked", "tls_failed", play=says(answer(b"hi")), is_deaf=True, scheme="https"),
    Target("certificate signed by itself", "tls_failed", play=says(answer(b"hi")), tls="self-signed", scheme="https"),
    Target("certificate that has expired", "tls_failed", play=says(answer(b"hi")), tls="expired", scheme="https"),
    Target("certificate for another name", "tls_failed", play=says(answer(b"hi")), tls="other-name", scheme="https"),
    Target("reset in the TLS handshake", "connect_failed", play=says(0.05, RESET), is_deaf=True, scheme="https"),
]  # fmt: skip
INSIDE = "http://127.0.0.2:{private}/"
REDIRECTS = [
    Target(f"redirect {status} to a private address", "redirect_not_allowed", True, redirects(status, INSIDE))
    for status in (301, 302, 307, 308)
] + [
    Target("redirect to itself", "redirect_not_allowed", True, redirects(302, "/")),
    Target("redirect to a file", "redirect_not_allowed", True, redirects(302, "file:///etc/passwd")),
    Target("redirect without a location", "redirect_not_allowed", True, says(
        b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n")),
]  # fmt: skip
#: How an address that is closed can be written; all of these lead to this machine or to its surroundings.
CLOSED = {
    "loopback": "127.0.0.1",
    "loopback, another": "127.0.0.2",
    "localhost": "localhost",
    "loopback, IPv6": "[::1]",
    "mapped into IPv6": "[::ffff:127.0.0.2]",
    "mapped into IPv6, in hexadecimal": "[::ffff:7f00:2]",
    "compatible IPv6": "[::127.0.0.2]",
    "behind NAT64": "[64:ff9b::7f00:2]",
    "behind 6to4": "[2002:7f00:2::1]",
    "decimal": "2130706434",
    "octal, short": "0177.2",
    "hexadecimal": "0x7f000002",
    "short": "127.2",
    "unspecified": "0.0.0.0",
    "unspecified, IPv6": "[::]",
    "metadata service": "169.254.169.254",
    "metadata service, IPv6": "[fd00:ec2::254]",
    "link-local": "169.254.7.7",
    "private 10": "10.0.0.1",
    "private 192.168": "192.168.0.1",
    "carrier's": "100.64.0.1",
    "broadcast": "255.255.255.255",
    "multicast": "224.0.0.1",
}
ADDRESSES = [
    Target(f"address: {name}", "egress_denied", True, url=f"http://{host}:{{private}}/")
    for name, host in CLOSED.items()
] + [
    Target("fragment that hides the host", "egress_denied", True, url="http://127.0.0.2:{private}#@example.com/"),
    Target("address: octal", "bad_payload", True, url="http://0177.0.0.2:{private}/"),
    Target("user name that looks like a host", "bad_payload", True, url="http://example.com@127.0.0.2:{private}/"),
    Target("user and password", "bad_payload", True, url="http://user:pw@127.0.0.2:{private}/"),
    Target("another scheme", "bad_payload", True, url="file:///etc/passwd"),
    Target("line break in the address", "bad_payload", True, url="http://127.0.0.2:{private}/\r\nX-A: b"),
    Target("line break in a header sent", "bad_payload", True, url=INSIDE, payload={"headers": {"X-A": "a\r\nX-B: b"}}),
]  # fmt: skip
ALL = [*SLOW, *ENDLESS, *BROKEN, *ODD, *TLS, *REDIRECTS, *ADDRESSES]
#: Tricks of names, which take a resolver of the test's own.
NAMES = [
    Target("name that leads inside at the next attempt", "egress_denied", True),
    Target("name that leads outside and inside", "egress_denied", True),
]
