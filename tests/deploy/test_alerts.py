"""Each alert of deploy/prometheus fires at its fault and resolves after it, judged by Prometheus's own rule engine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
MINUTES = 60

#: Alert -> series (Prometheus's notation, a value each 30 s: a fault for half an hour, then none), minute at which it
#: fires, minute by which it has resolved, and the labels it fires with.
BAD, GOOD = 60, 60
STAGED: dict[str, tuple[dict[str, str], int, int, dict[str, str]]] = {
    "PunctualDatabaseAway": ({"scheduler_database_up": f"0x{BAD} 1x{GOOD}"}, 3, 40, {}),
    "PunctualNoLeader": ({'scheduler_is_leader{instance="a"}': f"0x{BAD} 1x{GOOD}"}, 3, 40, {}),
    "PunctualNoWorker": ({"other": f"1x{BAD + GOOD}", 'worker_up{worker_id="w"}': f"_x{BAD} 1x{GOOD}"}, 3, 40, {}),
    "PunctualWorkerLost": (
        {'up{job="punctual-worker", instance="a:9001"}': f"0x{BAD} 1x{GOOD}"},
        3,
        40,
        {"job": "punctual-worker", "instance": "a:9001"},
    ),
    "PunctualJobsWait": (
        {'queue_oldest_job_age_seconds{queue="o/p/q"}': f"301+30x{BAD} 0x{GOOD}"},
        10,
        40,
        {"queue": "o/p/q"},
    ),
    "PunctualFailureRate": (
        {
            'jobs_failed_total{queue="o/p/q", job_type="t", terminal="false"}': f"0+3x{BAD} 180x{GOOD}",
            'jobs_completed_total{queue="o/p/q", job_type="t"}': f"0+7x{BAD + GOOD}",
        },
        15,
        40,
        {"queue": "o/p/q"},
    ),
    "PunctualDeadLetters": ({'dlq_size{queue="o/p/q"}': f"0x20 5x{BAD + GOOD - 20}"}, 13, 40, {"queue": "o/p/q"}),
    "PunctualScheduleMissed": (
        {'schedule_due_times_total{outcome="skipped", reason="misfire"}': f"0x20 2x{BAD + GOOD - 20}"},
        13,
        40,
        {},
    ),
    "PunctualSchedulerLate": ({"scheduler_lag_seconds": f"45x{BAD} 0x{GOOD}"}, 3, 40, {}),
    "PunctualDutyFails": (
        {'scheduler_duty_failures_total{duty="reap"}': f"0x20 1x{BAD + GOOD - 20}"},
        13,
        40,
        {"duty": "reap"},
    ),
    "PunctualLeasesExpire": (
        {'lease_expirations_total{queue="o/p/q"}': f"0x20 4x{BAD + GOOD - 20}"},
        13,
        40,
        {"queue": "o/p/q"},
    ),
    "PunctualLateResults": ({"late_results_refused_total": f"0x20 1x{BAD + GOOD - 20}"}, 13, 40, {}),
    "PunctualCircuitOpen": ({'circuit_breakers{state="open"}': f"1x{BAD} 0x{GOOD}"}, 10, 40, {}),
    "PunctualStatisticsStale": ({"queue_stats_age_seconds": f"0+30x{BAD} 2x{GOOD}"}, 10, 40, {}),
    "PunctualDeaf": (
        {'listener_connected{job="punctual-worker", instance="a:9001"}': f"0x{BAD} 1x{GOOD}"},
        10,
        40,
        {"job": "punctual-worker", "instance": "a:9001"},
    ),
}

RULE: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
}


def test_each_alert_is_staged_and_has_its_runbook():
    runbooks = (ROOT / "docs" / "runbooks.md").read_text()

    assert set(STAGED) == set(RULE)
    assert re.findall(r"^## (Punctual\w+)$", runbooks, re.M) == list(RULE)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize("name", list(STAGED))
def test_it_fires_in_its_fault_and_resolves(name: str, tmp_path: Path):
    series, fires_at, resolved_at, labels = STAGED[name]
    others = {} if "database" in next(iter(series)) else {"scheduler_database_up": f"1x{BAD + GOOD}"}
    others |= {} if name == "PunctualNoLeader" else {'scheduler_is_leader{instance="b"}': f"1x{BAD + GOOD}"}
    alert = {"exp_labels": {**RULE[name]["labels"], **labels}}

    def at(minute: int, *expected: dict[str, Any]) -> dict[str, Any]:
        return {"eval_time": f"{minute}m", "alertname": name, "exp_alerts": list(expected)}

    tests = {
        "rule_files": [str(_without_annotations(tmp_path))],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": "30s",
                "input_series": [{"series": k, "values": v} for k, v in (series | others).items()],
                "alert_rule_test": [at(fires_at, alert), at(resolved_at + 16)],
            }
        ],
    }
    path = tmp_path / "alerts_test.yml"
    path.write_text(yaml.safe_dump(tests))

    done = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stdout + done.stderr


def _without_annotations(folder: Path) -> Path:
    """The rules as they are, but for their sentences, whose figures are not what is tested."""
    rules = yaml.safe_load(RULES.read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert rule.pop("annotations")["summary"]
    path = folder / "alerts.yml"
    path.write_text(yaml.safe_dump(rules))
    return path


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_promtool_accepts_the_rules():
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stdout + done.stderr
