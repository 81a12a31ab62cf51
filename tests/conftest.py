"""Fixtures as a ladder: organization, project, queue, job, claimed job; and the database they stand on."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest
import structlog
from django.conf import settings
from django.db import connection
from pytest_django import DjangoDbBlocker

from orgs.models import Organization, Project
from queues.models import Queue
from tests import distributed
from tests.factories import make_organization, make_project, make_queue


def pytest_configure(config: pytest.Config) -> None:
    """Without an address the suite brings its own PostgreSQL."""
    if settings.EMBEDDED is not None:
        settings.EMBEDDED.ensure()


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last process out stops it; workers of a parallel run leave it to the one that started them."""
    if settings.EMBEDDED is not None and not hasattr(config, "workerinput"):
        settings.EMBEDDED.stop("immediate")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """With APP_TEST_DISTRIBUTED=1 (`make test-distributed`) the tenant tables are partitioned by project."""
    if distributed.IS_DISTRIBUTED:
        with django_db_blocker.unblock():
            distributed.distribute()


@pytest.fixture
def organization(db: None) -> Organization:
    """An organization."""
    return make_organization()


@pytest.fixture
def project(organization: Organization) -> Project:
    """A project of it."""
    return make_project(organization)


@pytest.fixture
def queue(project: Project) -> Queue:
    """A queue of it, without a limit."""
    return make_queue(project)


@pytest.fixture
def committed_queue(transactional_db: None) -> Queue:
    """A queue that other connections and processes can see."""
    from tests.work import CREATE_EFFECTS

    with connection.cursor() as cursor:
        cursor.execute(CREATE_EFFECTS)
        cursor.execute("truncate test_effects")
    return make_queue(make_project(make_organization()))


@pytest.fixture(autouse=True, scope="session")
def _behind_a_pooler(request: pytest.FixtureRequest) -> Iterator[None]:
    """With APP_TEST_POOLER=1 (`make test-pooler`) processes reach the database through PgBouncer."""
    if os.environ.get("APP_TEST_POOLER") != "1":
        yield
        return
    from tests import pooler, processes

    if pooler.PROGRAM is None:
        pytest.skip(pooler.MISSING)
    # First the database, so that the pooler's sessions are gone before it is dropped.
    request.getfixturevalue("django_db_setup")
    with request.getfixturevalue("django_db_blocker").unblock(), pooler.running_pooler() as running:
        processes.POOLED.update(APP_DATABASE_URL=running.url(), APP_DATABASE_DIRECT_URL=processes.database_url())
        yield
        processes.POOLED.clear()


@pytest.fixture
def unused_port() -> int:
    """A TCP port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(autouse=True)
def _own_log_context() -> Iterator[None]:
    """A request leaves its id bound for what Django logs after it; the next test is no part of it."""
    yield
    structlog.contextvars.clear_contextvars()
