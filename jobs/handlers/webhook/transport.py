"""The one HTTP client of a worker: it connects only to addresses that the egress policy has checked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import httpcore
import httpx
from django.conf import settings

from scheduler_project.lib.egress import DnsFailed, EgressDenied, Policy, Resolver, system_resolver

MAX_CONNECTIONS = 200
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


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
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)


class CheckedTransport(httpx.AsyncHTTPTransport):
    """Connections are not kept: the next use of a name is resolved and checked anew."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend, context: ssl.SSLContext | None = None) -> None:
        super().__init__(trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context or ssl.create_default_context(),
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=0,
            network_backend=backend,
        )


def new_client(policy: Policy, resolver: Resolver = system_resolver) -> httpx.AsyncClient:
    """A client without cookies, proxies, redirects and timeouts of its own: the call's deadline covers everything."""
    return httpx.AsyncClient(
        transport=CheckedTransport(CheckedBackend(policy, resolver)),
        trust_env=False,
        follow_redirects=False,
        timeout=None,  # noqa: S113 - one deadline over all
    )


def shared_client() -> httpx.AsyncClient:
    """The client of this event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = new_client(settings.EGRESS_POLICY)
    return _clients[loop]


__all__ = ["CheckedBackend", "CheckedTransport", "DnsFailed", "EgressDenied", "new_client", "shared_client"]
