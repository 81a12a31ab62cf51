"""Each query of the dashboards and of the alerts finds its series in a real Prometheus that scrapes real processes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.models import Job, JobStatDelta
from tests.factories import make_jobs, path_of
from tests.processes import Process
from tests.servers import web_server
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).parents[2]
TOKEN = "a-token-for-scrapers"


def panels() -> list[tuple[str, str]]:
    """(dashboard and panel, query) of all panels."""
    return [
        (f"{path.stem}: {panel['title']}", target["expr"])
        for path in sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
        for panel in json.loads(path.read_text())["panels"]
        for target in panel["targets"]
    ]


def alert_metrics() -> set[str]:
    """The names of the metrics that alerts are about."""
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
    return {
        name
        for rule in rules
        for name in re.findall(r"\b([a-z]+_[a-z_]+)\b(?=[{\[)]| [=<>])", rule["expr"])
        if name != "job_type"
    }


@contextmanager
def prometheus(folder: Path, port: int, targets: dict[str, int]) -> Iterator[str]:
    """A real one, with deploy's own configuration but for the places and the pace; its address."""
    config = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(ROOT / "deploy" / "prometheus" / "alerts.yml")]
    for job in config["scrape_configs"]:
        job.pop("dns_sd_configs", None)
        job["static_configs"] = [{"targets": [f"127.0.0.1:{targets[job['job_name']]}"]}]
        if "authorization" in job:
            (folder / "token").write_text(TOKEN)
            job["authorization"]["credentials_file"] = str(folder / "token")
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def ask(url: str, query: str) -> list[Any]:
    try:
        text = urllib.request.urlopen(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=10)
    except OSError:
        return []
    found: list[Any] = json.load(text)["data"]["result"]
    return found


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed (Debian: prometheus)")
def test_every_panel_has_data(committed_queue, unused_port, tmp_path):
    path = path_of(committed_queue)
    web, worker, scheduler, own = (unused_port + n for n in range(4))
    targets = {"punctual-web": web, "punctual-worker": worker, "punctual-scheduler": scheduler}
    make_jobs(committed_queue, 10, "failing", max_attempts=1)
    with (
        Process("runscheduler", "--metrics-port", str(scheduler)),
        Process("runworker", "--metrics-port", str(worker)),
        web_server(web, APP_METRICS_TOKEN=TOKEN),
        prometheus(tmp_path, own, targets) as url,
    ):
        up = "count(up == 1)"
        wait_until(lambda: [row["value"][1] for row in ask(url, up)] == ["3"], 60, what="three targets")
        # A rate needs a series that was there before it grew.
        seen = f'jobs_failed_total{{queue="{path}"}}'
        wait_until(lambda: ask(url, seen), 60, what="the first jobs")
        make_jobs(committed_queue, 30)
        make_jobs(committed_queue, 5, "failing", max_attempts=1)
        ended = ["completed", "dead_letter"]
        wait_until(lambda: not Job.objects.exclude(status__in=ended).exists(), 60)
        wait_until(lambda: not JobStatDelta.objects.exists(), 30)

        def empty() -> list[str]:
            return [
                f"{name}: {query}"
                for name, raw in panels()
                if not ask(url, query := raw.replace("$queue", path).replace("$__rate_interval", "1m"))
            ]

        # Schedules and losses that have not happened have no series: what shows them says so with a metric's name.
        quiet = ("Due times of schedules", "Lost leases and refused")
        wait_until(
            lambda: not [line for line in empty() if not any(word in line for word in quiet)],
            60,
            what="data for every panel",
        )
        known = {row["metric"]["__name__"] for row in ask(url, '{__name__=~".+"}')}

    assert alert_metrics() - known <= {"schedule_due_times_total", "scheduler_duty_failures_total"}
    assert len(panels()) > 30
