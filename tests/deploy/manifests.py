"""The objects of deploy/kubernetes as they are committed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
Manifest = dict[str, Any]


def read_all(folder: str = "*") -> list[Manifest]:
    """Every object of every file that a kustomization names."""
    paths = [p for p in sorted(FOLDER.glob(f"{folder}/*.yaml")) if p.name != "kustomization.yaml"]
    return [found for path in paths for found in yaml.safe_load_all(path.read_text())]


def settings() -> dict[str, str]:
    """The settings that all processes share."""
    lines = (FOLDER / "base" / "settings.env").read_text().split()
    return dict(line.split("=", 1) for line in lines)


def of_kind(kind: str) -> dict[str, Manifest]:
    """Name -> object."""
    return {found["metadata"]["name"]: found for found in read_all() if found["kind"] == kind}


def pods() -> dict[str, Manifest]:
    """Name of the workload -> the spec of its pods."""
    found = of_kind("Deployment") | of_kind("Job")
    return {name: workload["spec"]["template"]["spec"] for name, workload in found.items()}


def containers() -> Iterator[tuple[str, Manifest]]:
    """Each container with the name of its workload."""
    for name, pod in pods().items():
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            yield name, container


def main_container(name: str) -> Manifest:
    """The one container of a workload's pods that stays."""
    [container] = pods()[f"punctual-{name}"]["containers"]
    found: Manifest = container
    return found


def probes(name: str) -> list[Manifest]:
    """What is asked of it, by HTTP."""
    container = main_container(name)
    return [container[kind]["httpGet"] for kind in container if kind.endswith("Probe")]
