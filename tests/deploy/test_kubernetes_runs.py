"""The commands, settings, probes and the scaler's question of deploy/kubernetes, put to real processes."""

from __future__ import annotations

import json
import re
import signal
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from jobs.models import Job
from orgs.models import ApiKey
from tests.deploy.manifests import main_container, of_kind, pods, probes, settings
from tests.deploy.test_compose import written_env
from tests.factories import make_jobs, path_of
from tests.personas import make_key
from tests.processes import Process, database_url
from tests.sizes import long
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


def answer(url: str, **headers: str) -> tuple[int, str]:
    """Status and text; 0 if nobody is there."""
    request = urllib.request.Request(url, headers={k.replace("_", "-"): v for k, v in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def value_at(location: str, text: str) -> int:
    """What KEDA finds there: ``list.#(name=="value").field``."""
    match = re.fullmatch(r'(\w+)\.#\((\w+)=="([^"]+)"\)\.(\w+)', location)
    assert match, location
    items, name, wanted, field = match.groups()
    [found] = [item for item in json.loads(text)[items] if item[name] == wanted]
    value = found[field]
    assert isinstance(value, int)
    return value


@long
@pytest.mark.timeout(300)
def test_commands_run_probes_answer_the_scaler_counts_and_all_stop_in_time(committed_queue, unused_port):
    ports = {"web": unused_port, "worker": unused_port + 1, "scheduler": unused_port + 2, "migrate": 0}
    # What the secret holds is what docs/kubernetes.md makes it of.
    secret = {k: v for k, v in written_env().items() if k.startswith("APP_")}

    def start(name: str, command: list[str] | None = None) -> Process:
        words = command or main_container(name)["command"]
        places = {
            "APP_DATABASE_URL": database_url(),
            "APP_API_PORT": str(ports["web"]),
            "APP_METRICS_PORT": str(ports[name]),
        }
        program = ("-m", words[0]) if words[0] == "gunicorn" else tuple(words[1:2])
        arguments = words[1 if words[0] == "gunicorn" else 2 :]
        return Process(*arguments, env=settings() | secret | places, program=program)

    [first] = pods()["punctual-worker"]["initContainers"]
    for command in (main_container("migrate")["command"], first["command"]):
        with start("migrate", command) as migrate:
            assert migrate.wait(90) == 0, migrate.output()

    key = make_key(committed_queue.project, ApiKey.Scope.READ)
    make_jobs(committed_queue, 3, "nobody.runs.this")
    make_jobs(committed_queue, 20)
    running: dict[str, Process] = {}
    with (
        start("web") as running["web"],
        start("worker") as running["worker"],
        start("scheduler") as running["scheduler"],
    ):
        for name in running:
            for probe in probes(name):
                # As the kubelet asks: by the pod's address.
                url = f"http://127.0.0.1:{ports[name]}{probe['path']}"
                wait_until(lambda: answer(url, Host="10.1.2.3:3000")[0] == 200, 60, what=url)  # noqa: B023
        wait_until(lambda: Job.objects.filter(status="completed").count() == 20, 60, what="the jobs")

        [scaled] = of_kind("ScaledObject").values()
        asked = {}
        for trigger in scaled["spec"]["triggers"]:
            given = trigger["metadata"]
            address = urlsplit(given["url"])
            host, path = address.netloc, address.path
            location = given["valueLocation"].replace("acme/web/default", path_of(committed_queue))
            headers = {"Host": host, given["keyParamName"]: key}

            def value(path=path, location=location, headers=headers) -> int:
                status, text = answer(f"http://127.0.0.1:{ports['web']}{path}", **headers)
                assert status == 200, text
                return value_at(location, text)

            asked[location.rpartition(".")[2]] = value
        wait_until(lambda: asked["ready"]() == 3, 30, what="the jobs that wait")
        assert asked["running"]() == 0

        # As the proxy asks: it has done the TLS, and says so.
        page = f"http://127.0.0.1:{ports['web']}/login"
        assert answer(page, Host="jobs.example.com", X_Forwarded_Proto="https")[0] == 200
        assert answer(page, Host="other.example.com", X_Forwarded_Proto="https")[0] == 400

        for name, process in running.items():
            process.send(signal.SIGTERM)
            grace_s = pods()[f"punctual-{name}"]["terminationGracePeriodSeconds"]
            assert process.wait(grace_s) == 0, process.output()[-2_000:]
