"""Plays bad targets with raw sockets, one port for each, and a server behind them that nobody must ever reach."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.bad_targets import OUTSIDE, RESET, Act, Target

_HANG_UP = struct.pack("ii", 1, 0)

_SIGNS = x509.KeyUsage(
    key_cert_sign=True, crl_sign=True, digital_signature=False, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)  # fmt: skip


class Certificates:
    """An authority of the test's own, and servers' certificates that it signed, or did not."""

    def __init__(self, folder: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._folder = folder
        authority = self._make("authority", days=1, is_authority=True)
        self.authority = folder / "authority.pem"
        self._contexts = {
            "good": self._context("good", authority),
            "other-name": self._context("other-name", authority, host="another.test"),
            "expired": self._context("expired", authority, days=-1),
            "self-signed": self._context("self-signed", None),
        }

    def server(self, kind: str) -> ssl.SSLContext:
        """What a server of this kind shows."""
        return self._contexts[kind]

    def client(self) -> ssl.SSLContext:
        """Trusts the authority."""
        return ssl.create_default_context(cafile=str(self.authority))

    def _context(self, name: str, issuer: x509.Certificate | None, **options: object) -> ssl.SSLContext:
        self._make(name, issuer=issuer, **options)  # type: ignore[arg-type]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / f"{name}.pem")
        return context

    def _make(
        self, name: str, *, issuer: x509.Certificate | None = None, host: str = OUTSIDE, days: int = 1,
        is_authority: bool = False,
    ) -> x509.Certificate:  # fmt: skip
        now = datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = [x509.DNSName(host)] if host.endswith(".test") else [x509.IPAddress(IPv4Address(host))]
        public = self._key.public_key()
        unsigned = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer.subject if issuer else subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=3))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            # From Python 3.13 on a certificate without these is refused.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
        )
        if is_authority:
            unsigned = unsigned.add_extension(_SIGNS, critical=True)
        made = unsigned.sign(self._key, hashes.SHA256())
        key = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (self._folder / f"{name}.pem").write_bytes(key + made.public_bytes(serialization.Encoding.PEM))
        return made


class Playground:
    """All servers of a test. ``visits`` counts connections to the private one, ``open_count`` those to the others."""

    def __init__(self, targets: Sequence[Target], certificates: Certificates) -> None:
        self._certificates = certificates
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self.visits = self.open_count = 0
        self.heads: dict[str, list[bytes]] = {}
        self._listeners = [self._listen("0.0.0.0", None)]
        self.private_port = int(self._listeners[0].getsockname()[1])
        with contextlib.suppress(OSError):  # a machine without IPv6
            self._listeners.append(self._listen("::1", None, self.private_port))
        with socket.socket() as probe:
            probe.bind((OUTSIDE, 0))
            self._unused_port = int(probe.getsockname()[1])
        self._ports: dict[str, int] = {}
        for target in targets:
            if target.play is not None:
                listener = self._listen(OUTSIDE, target)
                self._listeners.append(listener)
                self._ports[target.name] = int(listener.getsockname()[1])
        self._wake, waker = socket.socketpair()
        self._selector.register(waker, selectors.EVENT_READ)
        self._listeners.append(waker)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def url(self, target: Target) -> str:
        """Where to call a target."""
        if target.play is None:
            return target.url.format(private=self.private_port, unused=self._unused_port)
        return f"{target.scheme}://{OUTSIDE}:{self._ports[target.name]}/"

    def close(self) -> None:
        """No more connections."""
        self._wake.close()
        self._thread.join(10)
        for listener in self._listeners:
            listener.close()
        self._selector.close()

    def _listen(self, host: str, target: Target | None, port: int = 0) -> socket.socket:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.bind((host, port))
        listener.listen(64)
        self._selector.register(listener, selectors.EVENT_READ, target or "private")
        return listener

    def _accept(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                assert isinstance(key.fileobj, socket.socket)
                connection, _ = key.fileobj.accept()
                if not isinstance(key.data, Target):
                    self.visits += 1
                    connection.close()
                    continue
                with self._lock:
                    self.open_count += 1
                threading.Thread(target=self._serve, args=(connection, key.data), daemon=True).start()

    def _serve(self, connection: socket.socket, target: Target) -> None:
        connection.settimeout(60)
        try:
            if target.tls:
                connection = self._certificates.server(target.tls).wrap_socket(connection, server_side=True)
            if not target.is_deaf:
                self.heads.setdefault(target.name, []).append(_read_head(connection))
            assert target.play is not None
            if self._say(connection, target.play()):
                while connection.recv(65_536):
                    pass
        except (OSError, ssl.SSLError):
            pass  # the other side went away, as it should
        finally:
            connection.close()
            with self._lock:
                self.open_count -= 1

    def _say(self, connection: socket.socket, parts: Act) -> bool:
        """Say it all; False if this side has ended it."""
        for part in parts:
            if part == RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _HANG_UP)
                connection.close()
                return False
            if part == b"":
                return False
            if isinstance(part, float):
                threading.Event().wait(part)
            else:
                connection.sendall(part.replace(b"{private}", str(self.private_port).encode()))
        return True


def _read_head(connection: socket.socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head:
        if not (part := connection.recv(65_536)):
            break
        head += part
    return head


@contextlib.contextmanager
def playground(targets: Sequence[Target], certificates: Certificates) -> Iterator[Playground]:
    """The servers, for the time of a test."""
    servers = Playground(targets, certificates)
    try:
        yield servers
    finally:
        servers.close()
