"""Goes through the checks one by one; a check that breaks is a finding itself, and the others are still made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from jobs.doctor.checks import (
    bloat,
    circuits,
    clock,
    configuration,
    database,
    horizon,
    leader,
    leases,
    listen,
    migrations,
    partitions,
    queues,
    schedules,
    sealed,
    server,
    timezones,
    workers,
)
from jobs.doctor.finding import Finding, Findings, Level, problem

Check = Callable[[], Findings]

CHECKS: dict[str, Check] = {
    "configuration": configuration.look,
    "database": database.look,
    "migrations": migrations.look,
    "server": server.look,
    "clock": clock.look,
    "timezones": timezones.look,
    "listen": listen.look,
    "horizon": horizon.look,
    "bloat": bloat.look,
    "partitions": partitions.look,
    "leader": leader.look,
    "workers": workers.look,
    "queues": queues.look,
    "leases": leases.look,
    "schedules": schedules.look,
    "circuits": circuits.look,
    "sealed": sealed.look,
}
#: Can be made without a database; the others only if the check "database" found it at work.
_ALONE = frozenset({"configuration", "database"})
#: Look at our tables, which may not be as they must be.
_NO_TABLES = frozenset({*_ALONE, "migrations", "server", "clock", "listen", "horizon"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding and the check that made it."""

    check: str
    finding: Finding


def examine(only: Collection[str] = ()) -> Iterator[Entry]:
    """Make the checks; one entry or more for each.

    Args:
        only: names of checks, all if empty. Those whose database is not there are left out.
    """
    is_there, is_migrated = True, True
    for name, look in CHECKS.items():
        is_asked = not only or name in only
        if not is_asked and name not in ("database", "migrations"):
            continue
        if (not is_there and name not in _ALONE) or (not is_migrated and name not in _NO_TABLES):
            continue
        found = _look(look)
        is_bad = any(finding.level is Level.PROBLEM for finding in found)
        is_there &= not (name == "database" and is_bad)
        is_migrated &= not (name == "migrations" and is_bad)
        if is_asked or is_bad:
            yield from (Entry(name, finding) for finding in found or [Finding(Level.OK, "in order")])


def _look(look: Check) -> list[Finding]:
    try:
        return list(look())
    except Exception as error:  # noqa: BLE001 - boundary: one broken check must not hide what the others find
        said = str(error).strip().partition("\n")[0]
        return [problem(f"could not be looked at: {type(error).__name__}: {said}", "mend this first, then ask again")]
