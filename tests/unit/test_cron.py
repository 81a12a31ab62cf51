"""When schedules fire: every case of tests/cases/cron.json, one by one and in a row, and properties."""

from __future__ import annotations

import itertools
import json
import os
import time
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from jobs.cron import CronError, fires, next_fire, parse, zone_of
from jobs.cron_notes import preview, warnings
from jobs.prove.slow_cron import clock_changes, random_expression, slow_fires

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent.parent / "cases" / "cron.json").read_text())


def at(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case_of_the_collection(case: dict[str, Any]) -> None:
    began = time.process_time()

    if case["expected"] in ("invalid", "never"):
        with pytest.raises(CronError):
            parse(case["expr"])
    else:
        try:
            cron = parse(case["expr"])
        except CronError:
            assert case.get("also_ok") == "invalid"
            return
        zone, after = zone_of(case["tz"]), at(case["after"])
        expected = [at(text) for text in case["expected"]]
        assert list(itertools.islice(fires(cron, zone, after), len(expected))) == expected
        one_by_one = []
        for _ in expected:
            found = next_fire(cron, zone, after)
            assert found is not None
            assert found > after
            one_by_one.append(found)
            after = found
        assert one_by_one == expected

    assert time.process_time() - began < 1


#: 5,000 by environment; a share of them in the suite.
WINDOWS = int(os.environ.get("CRON_WINDOWS", "300"))


@pytest.mark.timeout(1200)
def test_fires_around_clock_changes_equal_those_of_a_clock_that_runs_minute_by_minute() -> None:
    rng = Random(int(os.environ.get("CRON_SEED", "1")))
    changes = clock_changes(2024, 2030)
    compared = 0
    while compared < WINDOWS:
        name = rng.choice(sorted(changes))
        change = rng.choice(changes[name])
        expression = random_expression(rng)
        try:
            cron = parse(expression)
        except CronError:
            continue
        after = change - timedelta(hours=rng.randint(2, 30), minutes=rng.randint(0, 59))
        until, zone = change + timedelta(hours=30), ZoneInfo(name)

        found = list(itertools.takewhile(until.__ge__, fires(cron, zone, after)))

        assert found == slow_fires(expression, zone, after, until), (name, expression, after)
        compared += 1
    print(f"\n{compared} windows over {len(changes)} zones: no difference")


@pytest.mark.parametrize(
    ("gap", "repeat", "expected"),
    [
        ("run_after", "first", ["2026-03-29T01:00:00Z"]),
        ("skip", "first", ["2026-03-30T00:30:00Z"]),
    ],
)
def test_skipped_time_follows_the_schedules_choice(gap: Any, repeat: Any, expected: list[str]) -> None:
    found = fires(parse("30 2 * * *"), ZoneInfo("Europe/Berlin"), at("2026-03-28T12:00:00Z"), gap=gap, repeat=repeat)

    assert list(itertools.islice(found, 1)) == [at(text) for text in expected]


def test_repeated_time_can_run_on_both_passes() -> None:
    found = fires(parse("30 2 * * *"), ZoneInfo("Europe/Berlin"), at("2026-10-24T12:00:00Z"), repeat="both")

    assert list(itertools.islice(found, 2)) == [at("2026-10-25T00:30:00Z"), at("2026-10-25T01:30:00Z")]


@pytest.mark.parametrize(
    ("expression", "fragment"),
    [
        ("*/7 * * * *", "4 minutes later"),
        ("0 0 1 * 1", "or the day of week"),
        ("0 0 29 2 *", "leap years"),
        ("0 0 31 * *", "day 31 are skipped"),
        ("0 0 */2 * 1", "both match"),
    ],
)
def test_surprises_are_named(expression: str, fragment: str) -> None:
    assert any(fragment in text for text in warnings(parse(expression)))


def test_preview_notes_the_clock_change() -> None:
    rows = preview(parse("30 2 * * *"), ZoneInfo("Europe/Berlin"), at("2026-03-28T12:00:00Z"), count=2)

    assert "forward by 1 h" in rows[0].note
    assert "skipped that day" in rows[0].note
    assert rows[1].note == ""


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("0-0", {0}),
        ("sun", {0}),
        ("7", {0}),
        ("sat-sun", {6, 0}),
        ("5-0", {5, 6, 0}),
        ("0-7", set(range(7))),
        ("7-7", {0}),
    ],
)
def test_weekdays_are_read_as_people_write_them(field: str, days: set[int]) -> None:
    assert parse(f"0 0 1 1 {field}").weekdays == days
