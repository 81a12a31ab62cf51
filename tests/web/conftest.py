"""Personas with a session, and the paths of pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from jobs.services.schedules import create_schedule
from tests.personas import *  # noqa: F403
from tests.personas import _without_collected_files  # noqa: F401


@pytest.fixture
def signed_in(request: Any, db: None) -> Callable[[str], Client]:
    """A client of the persona of this name; ``anonymous`` has no session, ``stranger`` owns another organization."""

    def make(who: str) -> Client:
        client = Client()
        if who != "anonymous":
            client.force_login(request.getfixturevalue("outsider" if who == "stranger" else who))
        return client

    return make


@pytest.fixture
def home(queue: Any) -> str:
    """The path of the queue's project."""
    return f"/p/{queue.project.organization.slug}/{queue.project.slug}/"


@pytest.fixture
def nightly(queue):
    return create_schedule(
        queue, name="nightly", cron_expression="0 3 * * *", timezone="Europe/Berlin", job_type="noop"
    )


@pytest.fixture
def place(home, nightly):
    return f"{home}scheduled-jobs/{nightly.pk}"
