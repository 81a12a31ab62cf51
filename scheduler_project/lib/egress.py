"""Where requests on behalf of customers may go. Names are resolved once; the address that was checked is the one used.

Closed unless the operator opens them: everything that is not a public unicast address, also when it is wrapped into
an IPv6 address (mapped, 6to4, Teredo, NAT64), and metadata services that have public addresses.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
#: Host and port to the texts of its addresses; raises OSError.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = IPv6Network("::/96")
#: Assigned to protocols, and some clouds' metadata; older releases of Python take most of it for public.
_PROTOCOLS = IPv4Network("192.0.0.0/24")
_METADATA = frozenset({IPv4Address("168.63.129.16")})  # public by its number, the host of the machine in truth
MAX_HOST_CHARS = 253
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*", re.ASCII)
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)", re.ASCII)


class EgressDenied(Exception):
    """The target is closed. Names no address: a customer must not learn what a name means inside."""

    def __init__(self) -> None:
        super().__init__("egress_denied: this target is closed by the egress policy")


class DnsFailed(Exception):
    """The host has no address now."""

    def __init__(self) -> None:
        super().__init__("dns_failed: the host name can not be resolved")


@dataclass(frozen=True, slots=True)
class Rules:
    """Networks and host patterns (``*.example.com``), read from text."""

    networks: tuple[Network, ...] = ()
    hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Rules:
        """Read entries: an address, a network, or a host pattern.

        Raises:
            ValueError: an entry with a slash that is no network.
        """
        networks: list[Network] = []
        hosts: list[str] = []
        for entry in entries:
            try:
                networks.append(ip_network(entry))
            except ValueError:
                if "/" in entry or ":" in entry:
                    raise
                hosts.append(_plain(entry))
        return cls(tuple(networks), tuple(hosts))

    @classmethod
    def of_text(cls, text: str) -> Rules:
        """The same, from entries separated by commas."""
        return cls.of(part.strip() for part in text.split(",") if part.strip())

    def has(self, host: str, address: Address) -> bool:
        """Is the host, the address or one wrapped into it meant?"""
        return any(fnmatchcase(host, pattern) for pattern in self.hosts) or any(
            one in network for one in _faces(address) for network in self.networks
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """Deny wins; ``allow`` opens what is closed by its kind; where there is an ``only``, nothing else is reached."""

    allow: Rules = Rules()
    deny: Rules = Rules()
    only: Rules | None = None

    def narrowed(self, only: Iterable[str], deny: Iterable[str]) -> Policy:
        """This policy as a tenant narrows it: it can close, and never open what is closed here.

        Args:
            only: if not empty, targets that match none of these are closed.
            deny: closed as well.

        Raises:
            ValueError: an entry that is neither a host, a pattern nor a network.
        """
        listed, closed = Rules.of(only), Rules.of(deny)
        never = Rules(self.deny.networks + closed.networks, self.deny.hosts + closed.hosts)
        return Policy(self.allow, never, None if listed == Rules() else listed)

    def permits(self, host: str, text: str) -> bool:
        """May this host be reached at this address?"""
        address = ip_address(text.partition("%")[0])
        host = _plain(host)
        if self.deny.has(host, address) or not (self.only is None or self.only.has(host, address)):
            return False
        return self.allow.has(host, address) or all(_is_public(one) for one in _faces(address))

    async def resolve(self, host: str, port: int, resolver: Resolver) -> list[str]:
        """The addresses of a host, all of them permitted.

        Raises:
            DnsFailed: none is known.
            EgressDenied: one of them is closed; a name that also leads inside is not to be trusted with the rest.
        """
        try:
            found = list(dict.fromkeys(await resolver(host, port)))
        except (OSError, UnicodeError):
            raise DnsFailed from None
        if not found:
            raise DnsFailed
        if not all(self.permits(host, text) for text in found):
            raise EgressDenied
        return found


def read_entry(text: str) -> str:
    """One entry of a tenant's list, in the form it is kept in: a host, ``*.`` and a host, an address or a network.

    Raises:
        ValueError: says what is wrong with it.
    """
    entry = text.strip().lower()
    if "/" in entry or ":" in entry:
        try:
            if "%" in entry:
                raise ValueError("a zone")
            return str(ip_network(entry))
        except ValueError as error:
            raise ValueError(f"is no network: {error}" if "host bits" in str(error) else "is no network") from None
    host = entry.rstrip(".")
    if not host.isascii():
        raise ValueError("must be written in ASCII, as xn--…")
    if len(host) > MAX_HOST_CHARS or not _HOST.fullmatch(host):
        raise ValueError("is no host name, pattern such as *.example.com, address or network such as 203.0.113.0/24")
    if not _NUMBER.fullmatch(host.rpartition(".")[2]):
        return host
    # A host that ends in a number is an address, in whatever way it is written; only the usual one is compared.
    try:
        return str(ip_address(host))
    except ValueError:
        raise ValueError("is no address; write it as four decimal numbers, such as 203.0.113.7") from None


async def system_resolver(host: str, port: int) -> list[str]:
    """What the system says; it also reads decimal, octal and hexadecimal forms, which are checked like any other."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def _plain(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _is_public(address: Address) -> bool:
    if address in _METADATA or address in _PROTOCOLS:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _faces(address: Address) -> list[Address]:
    """The address itself, or instead what it wraps: that is where a packet may end."""
    if isinstance(address, IPv4Address):
        return [address]
    wrapped: list[Address] = []
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address.sixtofour:
        wrapped.append(address.sixtofour)
    if address.teredo:
        wrapped.extend(address.teredo)
    if any(address in network for network in _NAT64):
        return [address, IPv4Address(int(address) & 0xFFFF_FFFF)]
    if address in _COMPATIBLE:
        wrapped.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return [address, *wrapped]
