"""docker-compose.yml: its commands, settings and health checks, run as they stand, without containers."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.models import Job
from tests.factories import make_jobs
from tests.processes import Process, database_url
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("migrate", "web", "worker", "scheduler")


def written_env() -> dict[str, str]:
    """What deploy/make_env.py writes."""
    program = [sys.executable, str(ROOT / "deploy" / "make_env.py")]
    lines = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
    return dict(line.split("=", 1) for line in lines)


def filled(text: str, given: dict[str, str]) -> str:
    """``${NAME}``, ``${NAME:-default}`` and ``${NAME:?message}`` as compose fills them."""

    def value(match: re.Match[str]) -> str:
        name, sign, rest = match.group(1), match.group(2), match.group(3)
        if given.get(name):
            return given[name]
        assert sign == ":-", f"{name} is asked for, and make_env.py does not write it"
        return rest or ""

    return re.sub(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}", value, text)


def settings_of(service: str) -> dict[str, str]:
    given = written_env()
    return {name: filled(str(value), given) for name, value in SERVICES[service]["environment"].items()}


def is_gone(process: Process) -> bool:
    return process.popen.poll() is not None


def seconds(text: str) -> float:
    return float(text.removesuffix("s").removesuffix("m")) * (60 if text.endswith("m") else 1)


def test_the_ports_are_those_that_are_promised():
    ports = {name: service.get("ports", []) for name, service in SERVICES.items()}

    assert ports["web"] == ["8080:3000", "3000:3000"]
    assert ports["prometheus"] == ["127.0.0.1:9090:9090"]
    assert ports["grafana"] == ["127.0.0.1:3001:3000"]
    assert not any(ports[name] for name in ("db", "worker", "scheduler", "migrate"))


def test_every_secret_is_ones_own_and_asked_for():
    first, second = written_env(), written_env()

    for service in SERVICES:
        for name, value in SERVICES[service].get("environment", {}).items():
            filled(str(value), first)  # asserts that what is asked for is written
            if any(word in name for word in ("SECRET", "PASSWORD", "TOKEN")):
                assert "${" in str(value), f"{service} has a secret that everybody has: {name}"
    assert all(first[name] != second[name] for name in first)


def test_processes_of_ours_are_confined_and_given_the_time_they_need():
    for name in OURS:
        service = SERVICES[name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert service["depends_on"]
    assert re.search(r"^USER punctual$", (ROOT / "Dockerfile").read_text(), re.M)
    assert "--require-hashes" in (ROOT / "Dockerfile").read_text()
    assert SERVICES["scheduler"]["deploy"]["replicas"] == 2
    assert seconds(SERVICES["worker"]["stop_grace_period"]) >= 30 + 15
    for name in ("prometheus", "grafana"):
        for volume in SERVICES[name]["volumes"]:
            place = volume.split(":")[0]
            assert not place.startswith(".") or (ROOT / place).is_dir()


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed (Debian has it)")
def test_compose_itself_accepts_the_file(tmp_path):
    """Debian's, of the first generation: two things that it does not know yet are said in its words."""
    known = {k: v for k, v in COMPOSE.items() if k not in ("name", "secrets")}
    known["secrets"] = {name: {"file": "/dev/null"} for name in COMPOSE["secrets"]}
    (tmp_path / "docker-compose.yml").write_text(yaml.safe_dump(known))
    (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in written_env().items()))
    done = subprocess.run(["docker-compose", "config", "-q"], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
def test_the_very_commands_run_a_job_answer_their_health_checks_and_stop_in_time(committed_queue, unused_port):
    # On one machine each needs a port of its own, and the database is the tests'.
    ports = {"web": unused_port, "worker": unused_port + 1, "scheduler": unused_port + 2}
    running: dict[str, Process] = {}

    def start(name: str) -> Process:
        places = {
            "APP_DATABASE_URL": database_url(),
            "APP_API_PORT": str(ports["web"]),
            "APP_METRICS_PORT": str(ports.get(name, 0)),
        }
        words = SERVICES[name]["command"]
        program = ("-m", words[0]) if words[0] == "gunicorn" else tuple(words[1:2])
        return Process(*words[1 if words[0] == "gunicorn" else 2 :], env=settings_of(name) | places, program=program)

    with start("migrate") as migrate:
        wait_until(partial(is_gone, migrate), 60, what="the migration")
        assert migrate.popen.returncode == 0, migrate.output()

    def is_healthy(name: str) -> bool:
        words = [word.replace(":3000/", ":9001/") for word in SERVICES[name]["healthcheck"]["test"][2:]]
        words[-1] = words[-1].replace(":9001/", f":{ports[name]}/")
        return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, timeout=20).returncode == 0

    assert not is_healthy("web")
    make_jobs(committed_queue, 20)
    with (
        start("web") as running["web"],
        start("worker") as running["worker"],
        start("scheduler") as running["scheduler"],
    ):
        for name in ports:
            wait_until(partial(is_healthy, name), 60, what=f"{name}'s health")
        wait_until(lambda: Job.objects.filter(status="completed").count() == 20, 60, what="the jobs")
        for name, process in running.items():
            process.send(signal.SIGTERM)
            grace_s = seconds(SERVICES[name]["stop_grace_period"])
            wait_until(partial(is_gone, process), grace_s, what=f"the end of {name}")
            assert process.popen.returncode == 0, process.output()[-2_000:]
