"""Fixtures for pytest: ``pytest_plugins = ["jobs.testing.plugin"]`` in the conftest.py at the root of your tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from scheduler_project.lib.ids import uuid7


def pytest_configure(config: pytest.Config) -> None:
    """Without APP_DATABASE_URL the tests bring their own PostgreSQL."""
    if settings.EMBEDDED is not None:
        settings.EMBEDDED.ensure()


def pytest_unconfigure(config: pytest.Config) -> None:
    """And the process that started it stops it."""
    if settings.EMBEDDED is not None and not hasattr(config, "workerinput"):
        settings.EMBEDDED.stop("immediate")


@pytest.fixture
def punctual_queue(db: None) -> Any:
    """A queue without limits, in a project and an organization of its own."""
    from orgs.models import Organization, Project
    from queues.models import Queue

    mark = uuid7().hex[-12:]
    organization = Organization.objects.create(name=f"Test {mark}", slug=f"test-{mark}")
    project = Project.objects.create(organization=organization, name="Test", slug="test")
    return Queue.objects.create(project=project, name="default")


@pytest.fixture
def run_inline() -> Callable[..., Any]:
    """``jobs.testing.run_inline``."""
    from jobs.testing import run_inline

    return run_inline


@pytest.fixture
def drain(db: None) -> Callable[..., Any]:
    """``jobs.testing.drain``."""
    from jobs.testing import drain

    return drain


@pytest.fixture
def time_passes(db: None) -> Callable[[float], None]:
    """``jobs.testing.time_passes``."""
    from jobs.testing import time_passes

    return time_passes


@pytest.fixture
def assert_submitted(db: None) -> Callable[..., Any]:
    """``jobs.testing.assert_submitted``."""
    from jobs.testing import assert_submitted

    return assert_submitted
