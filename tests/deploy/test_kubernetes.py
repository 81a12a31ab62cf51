"""The manifests of deploy/kubernetes: valid, whole, closed, and with time enough to stop."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from scheduler_project import gunicorn
from tests.deploy.manifests import FOLDER, Manifest, containers, main_container, of_kind, pods, read_all, settings

#: Untyped, and with the schemas of Kubernetes itself.
judge: Any = importlib.import_module("kubernetes_validate")
KUBERNETES = "1.34"
#: Made by whoever installs it; docs/kubernetes.md says how.
SECRETS = {"punctual", "punctual-scaler"}
OURS = ("web", "worker", "scheduler")


def builtin() -> list[Manifest]:
    return [found for found in read_all() if "keda" not in found["apiVersion"]]


@pytest.mark.parametrize("found", builtin(), ids=lambda m: f"{m['kind']} {m['metadata']['name']}")
def test_kubernetes_knows_every_field(found: Manifest):
    judge.validate(found, KUBERNETES, strict=True)


def test_the_judge_notices_a_wrong_field():
    with pytest.raises(judge.ValidationError):
        judge.validate(of_kind("Service")["punctual-web"] | {"replicas": 2}, KUBERNETES, strict=True)


@pytest.mark.parametrize("folder", ["base", "keda"])
def test_the_kustomization_names_every_file(folder: str):
    found = yaml.safe_load((FOLDER / folder / "kustomization.yaml").read_text())
    there = {path.name for path in (FOLDER / folder).iterdir()} - {"kustomization.yaml", "settings.env"}

    assert {name for name in found["resources"] if not name.startswith("..")} == there
    assert all((FOLDER / folder / name).exists() for name in found["resources"])


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_it_renders_and_leaves_the_number_of_workers_to_keda():
    rendered: dict[str, list[Manifest]] = {}
    for folder in ("base", "keda"):
        command = ["kubectl", "kustomize", str(FOLDER / folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        rendered[folder] = list(yaml.safe_load_all(done.stdout))
        for found in rendered[folder]:
            assert found["kind"] == "Namespace" or found["metadata"]["namespace"] == "punctual"
            if "keda" not in found["apiVersion"]:
                judge.validate(found, KUBERNETES, strict=True)

    def workers(folder: str) -> Any:
        [found] = [
            m for m in rendered[folder] if (m["kind"], m["metadata"]["name"]) == ("Deployment", "punctual-worker")
        ]
        return found["spec"].get("replicas")

    assert (workers("base"), workers("keda")) == (2, None)


def test_every_reference_leads_somewhere():
    workloads, labels = of_kind("Deployment"), {}
    for name, found in (workloads | of_kind("Job")).items():
        labels[name] = found["spec"]["template"]["metadata"]["labels"]
        if "selector" in found["spec"]:
            assert found["spec"]["selector"]["matchLabels"] == labels[name]

    def selected(wanted: dict[str, str]) -> list[str]:
        return [name for name, has in labels.items() if wanted.items() <= has.items()]

    service = of_kind("Service")["punctual-web"]["spec"]
    assert selected(service["selector"]) == ["punctual-web"]
    assert service["ports"][0]["targetPort"] in {port["name"] for port in main_container("web")["ports"]}
    for name, found in of_kind("PodDisruptionBudget").items():
        assert selected(found["spec"]["selector"]["matchLabels"]) == [name]
    assert set(of_kind("PodDisruptionBudget")) == set(workloads)
    for name, container in containers():
        assert [next(iter(of.values()))["name"] for of in container["envFrom"]] == ["punctual-settings", "punctual"]
        volumes = {volume["name"] for volume in pods()[name]["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        ports = {port["name"] for port in container.get("ports", [])}
        assert {container[k]["httpGet"]["port"] for k in container if k.endswith("Probe")} <= ports
    [scaled] = of_kind("ScaledObject").values()
    assert scaled["spec"]["scaleTargetRef"]["name"] in workloads
    assert {t["authenticationRef"]["name"] for t in scaled["spec"]["triggers"]} == set(of_kind("TriggerAuthentication"))


def test_no_secret_is_in_the_clear():
    assert of_kind("Secret") == {}
    assert [name for name in settings() if re.search("SECRET|TOKEN|PASSWORD|KEY|URL", name)] == []
    assert [container["name"] for _, container in containers() if "env" in container] == []
    text = "".join(path.read_text() for path in FOLDER.rglob("*") if path.is_file())
    assert re.findall(r"://[^/\s]*:[^/\s]*@", text) == []
    for found in of_kind("TriggerAuthentication").values():
        assert {secret["name"] for secret in found["spec"]["secretTargetRef"]} <= SECRETS


def test_every_container_is_confined():
    for name, container in containers():
        confined = container["securityContext"]
        assert confined["capabilities"] == {"drop": ["ALL"]}, name
        assert confined["readOnlyRootFilesystem"] is True
        assert confined["allowPrivilegeEscalation"] is False
        assert container["resources"]["limits"]["memory"]
        assert pods()[name]["securityContext"]["runAsNonRoot"] is True
        assert pods()[name]["automountServiceAccountToken"] is False


def test_everybody_has_the_time_to_stop_that_he_needs():
    grace = {name: pods()[f"punctual-{name}"]["terminationGracePeriodSeconds"] for name in OURS}
    pause = int(main_container("web")["lifecycle"]["preStop"]["exec"]["command"][-1])

    assert grace["worker"] >= int(settings()["APP_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS"]) + 15
    assert grace["web"] >= pause + gunicorn.graceful_timeout + 10
    assert grace["scheduler"] >= 15


def test_nobody_is_alone_and_nobody_works_before_the_tables_are_there():
    for name in OURS:
        deployment = of_kind("Deployment")[f"punctual-{name}"]["spec"]
        assert deployment["replicas"] >= 2
        assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        [first] = pods()[f"punctual-{name}"]["initContainers"]
        assert first["command"][2:] == ["migrate", "--check"]
    assert "livenessProbe" not in main_container("worker")  # its handlers may compute for long
