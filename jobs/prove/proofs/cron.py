"""Schedules fire when a clock on the wall says so, in every zone, also when the clocks change."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from jobs import cron
from jobs.prove.slow_cron import clock_changes, random_expression, slow_fires
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.proof import Proof, Size, all_of, none_of
from jobs.prove.stage.stage import Stage
from scheduler_project.lib.figures import Figure

FIRST_YEAR, LAST_YEAR = 2024, 2030


def run(stage: Stage) -> list[Figure]:
    """Random expressions around clock changes, against an evaluator that steps minute by minute."""
    changes = clock_changes(FIRST_YEAR, LAST_YEAR)
    names = sorted(changes)
    stage.say(f"{len(names)} zones change their clocks from {FIRST_YEAR} to {LAST_YEAR}")
    lot = Random(stage["seed"])  # noqa: S311 - the cases
    lot.shuffle(names)
    differences = fires = 0
    for number in range(stage["windows"]):
        name = names[number % len(names)]
        found, expected = _window(lot, name, lot.choice(changes[name]))
        differences += found != expected
        fires += len(expected)
        if number % 50 == 49:
            stage.say(f"{number + 1:,} windows compared, {differences} differences")
    return [
        none_of("differences", differences, "windows"),
        all_of("fires_compared", fires, 1),
        Figure("windows", stage["windows"]),
        Figure("zones", min(len(names), stage["windows"])),
    ]


def _window(lot: Random, name: str, change: datetime) -> tuple[list[datetime], list[datetime]]:
    """The fires of a random expression in the days around a clock change: ours, and the slow evaluator's."""
    while True:
        expression = random_expression(lot)
        try:
            parsed = cron.parse(expression)
        except cron.CronError:  # not all of them ever fire
            continue
        after = change - timedelta(hours=lot.randint(2, 30), minutes=lot.randint(0, 59))
        until, zone = change + timedelta(hours=30), ZoneInfo(name)
        found = list(itertools.takewhile(until.__ge__, cron.fires(parsed, zone, after)))
        return found, slow_fires(expression, zone, after, until)


def _without_clock_changes() -> None:
    # As if each day had the one offset that it begins with.
    replace(cron, "_steady_offset", lambda zone, midnight: midnight.replace(tzinfo=zone).utcoffset())


PROOF = Proof(
    name="cron",
    run=run,
    sizes={"windows": Size(120, 20_000), "seed": Size(1, 2)},
    breaks={"clock_changes": _without_clock_changes},
)
