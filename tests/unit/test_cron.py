"""When schedules fire: every case of tests/cases/cron.json, one by one and in a row, and properties."""

from __future__ import annotations

import itertools
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from jobs.cron import CronError, fires, next_fire, parse, zone_of

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
            assert found is not None and found > after
            one_by_one.append(found)
            after = found
        assert one_by_one == expected

    assert time.process_time() - began < 1
