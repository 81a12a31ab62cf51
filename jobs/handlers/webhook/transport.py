"""The client of one call: it connects only to addresses that the egress policy has checked, and reads only so much."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from functools import cache
from typing import Any

import httpcore
import httpx

from scheduler_project.lib.egress import DnsFailed, EgressDenied, Policy, Resolver, system_resolver

#: Of one answer with all that surrounds its body. Sixty-four KiB in chunks of one byte are a fifth of it.
MAX_READ_BYTES = 2_097_152


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Resolves, checks and connects by number. TLS still verifies the name: only this step sees the address."""

    def __init__(self, policy: Policy, resolver: Resolver = system_resolver) -> None:
        self._policy, self._resolver, self._inner = policy, resolver, httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first checked address that answers."""
        addresses = await self._policy.resolve(host, port, self._resolver)
        for address in addresses[:-1]:
            try:
                return await self._connect(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._connect(addresses[-1], port, timeout, local_address, socket_options)

    async def _connect(self, address: str, *options: Any) -> httpcore.AsyncNetworkStream:
        return BoundedStream(await self._inner.connect_tcp(address, *options))


class BoundedStream(httpcore.AsyncNetworkStream):
    """A connection that gives up on a target that talks without end, and that is closed whatever ends a handshake."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner, self._read_bytes = inner, 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes. Raises RemoteProtocolError when they are too many: interim answers, chunk extensions …"""
        data = await self._inner.read(max_bytes, timeout)
        self._read_bytes += len(data)
        if self._read_bytes > MAX_READ_BYTES:
            raise httpcore.RemoteProtocolError("more than is ever read")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes."""
        await self._inner.write(buffer, timeout)

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Shake hands."""
        try:
            return BoundedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))
        except BaseException:  # boundary: the deadline cancels, and the library then forgets the socket
            await self._inner.aclose()
            raise

    async def aclose(self) -> None:
        """Close it."""
        await self._inner.aclose()

    def get_extra_info(self, info: str) -> Any:
        """What the library asks of a connection."""
        return self._inner.get_extra_info(info)


class CheckedTransport(httpx.AsyncHTTPTransport):
    """Nothing is kept for the next call, which resolves and checks the name anew."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend, context: ssl.SSLContext) -> None:
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context, max_keepalive_connections=0, network_backend=backend
        )


@cache
def trusted() -> ssl.SSLContext:
    """The authorities of the system; reading them takes too long to do it for each call."""
    return ssl.create_default_context()


def new_client(
    policy: Policy, resolver: Resolver = system_resolver, context: ssl.SSLContext | None = None
) -> httpx.AsyncClient:
    """A client without cookies, proxies, redirects and timeouts of its own: the call's deadline covers everything."""
    return httpx.AsyncClient(
        transport=CheckedTransport(CheckedBackend(policy, resolver), context or trusted()),
        trust_env=False,
        follow_redirects=False,
        timeout=None,  # noqa: S113 - one deadline over all
    )


__all__ = ["CheckedBackend", "CheckedTransport", "DnsFailed", "EgressDenied", "new_client"]
