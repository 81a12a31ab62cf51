"""Facts of projects are read once in a few seconds, however many ask."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jobs.handlers.facts import ProjectFacts
from jobs.worker import facts as module
from jobs.worker.facts import FactsCache
from orgs.webhook_secrets import create_secret, revoke_secret
from tests.worker_parts import context_of, lease_of


class Source:
    """Counts the readings; the clock stands still unless it is moved."""

    def __init__(self) -> None:
        self.read_of: list[str] = []
        self.now = 100.0
        self.cache = FactsCache(self.read, lambda: self.now)

    def read(self, project_id: str) -> ProjectFacts:
        self.read_of.append(project_id)
        return ProjectFacts(webhook_secrets=(str(len(self.read_of)).encode(),))


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setattr(module, "has_open_connection", lambda: True)
    return Source()


def test_kept_for_a_moment_by_project(source: Source) -> None:
    first = source.cache.of("a")
    assert source.cache.of("a") is first
    assert source.cache.of("b") != first
    source.now += module.KEPT_S
    assert source.cache.of("a") != first
    assert source.read_of == ["a", "b", "a"]


def test_of_many_who_ask_one_reads(source: Source) -> None:
    gate = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: (gate.wait(10), source.cache.of("a"))[1], range(8)))
    assert len(set(map(id, found))) == 1
    assert source.read_of == ["a"]


def test_an_error_is_not_kept(source: Source) -> None:
    def fail(project_id: str) -> ProjectFacts:
        raise OSError(project_id)

    read, source.cache._read = source.cache._read, fail
    with pytest.raises(OSError, match="a"):
        source.cache.of("a")
    source.cache._read = read
    assert source.cache.of("a")


def test_what_is_kept_is_bounded(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROJECTS", 3)
    for name in "abcde":
        source.cache.of(name)
    assert list(source.cache._kept) == ["c", "d", "e"]
    assert list(source.cache._reading) == ["c", "d", "e"]


def test_a_context_reads_the_facts_of_its_project(project) -> None:
    made = [create_secret(project, by=None) for _ in "ab"]
    ctx = context_of(lease_of("x")._replace(project_id=str(project.pk)))
    assert len(ctx.project_facts().webhook_secrets) == 2

    revoke_secret(made[0].row.pk)

    assert len(ctx.project_facts().webhook_secrets) == 2, "kept"
    fresh = context_of(lease_of("x")._replace(project_id=str(project.pk)))
    assert len(fresh.project_facts().webhook_secrets) == 1
