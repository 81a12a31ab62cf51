"""The dashboard reads from a read-only copy, if there is one that answers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, ProgrammingError, connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from queues.models import Queue
from scheduler_project.lib import replica
from tests.factories import make_job, make_queue

# Django's test cases want to know every alias that may be asked.
pytestmark = pytest.mark.django_db(transaction=True, databases=["default", replica.ALIAS])

#: Set for each session, as on a standby: whatever writes is refused.
READ_ONLY = "-c default_transaction_read_only=on"
Change = Callable[..., None]


@pytest.fixture(autouse=True, scope="module")
def _alias(django_db_setup: None) -> Iterator[None]:
    """A second alias of the tests' database, there before a test case asks which there are."""
    found = replica.settings_of(copy.deepcopy(connection.settings_dict))
    found["OPTIONS"]["options"] = READ_ONLY
    connections.settings[replica.ALIAS] = {**connection.settings_dict, **found}
    yield
    connections[replica.ALIAS].close()
    del connections[replica.ALIAS], connections.settings[replica.ALIAS]


@pytest.fixture(autouse=True)
def change(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Change]:
    """Changes the copy's settings for this test."""
    monkeypatch.setattr(replica, "_away_until", 0.0)

    def change(**changes: Any) -> None:
        connections[replica.ALIAS].close()
        for name, value in changes.items():
            monkeypatch.setitem(connections[replica.ALIAS].settings_dict, name, value)

    yield change
    connections[replica.ALIAS].close()


@pytest.fixture
def viewer_client(signed_in: Callable[[str], Client], queue: Queue) -> Client:
    return signed_in("viewer")


def asked(act: Callable[[], Any]) -> tuple[Any, list[str], list[str]]:
    """What came of it, and what the database and the copy were asked."""
    with CaptureQueriesContext(connection) as own, CaptureQueriesContext(connections[replica.ALIAS]) as copies:
        answer = act()
    return answer, [query["sql"] for query in own], [query["sql"] for query in copies]


def test_the_dashboard_reads_jobs_from_the_copy_and_rights_from_the_database(
    viewer_client: Client, home: str, queue: Queue
) -> None:
    make_job(queue)
    answer, own, copies = asked(lambda: viewer_client.get(home))

    assert answer.status_code == 200
    assert queue.name in answer.content.decode()
    assert any("from job_stats" in sql for sql in copies)
    # Who signed in, and what he may: decided before the copy is asked (it lists his projects for the switcher).
    assert any("session" in sql for sql in own)
    assert any('"organization_members"' in sql for sql in own)
    assert not any("session" in sql for sql in copies)
    assert not any("from job_stats" in sql for sql in own)


def test_no_other_page_asks_it(viewer_client: Client, home: str, queue: Queue) -> None:
    for path in ("queues", f"queues/{queue.pk}", "jobs", "workers"):
        answer, _, copies = asked(partial(viewer_client.get, home + path))
        assert (answer.status_code, copies) == (200, []), path


def test_without_one_the_database_is_asked(viewer_client: Client, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(connections.settings, replica.ALIAS)

    with CaptureQueriesContext(connection) as own:
        assert viewer_client.get(home).status_code == 200
    assert any("from job_stats" in query["sql"] for query in own)


@pytest.mark.parametrize("changes", [{"NAME": "no_such_database"}, {"HOST": "/nowhere"}])
def test_one_that_is_away_costs_one_try_and_no_page(
    change: Change, viewer_client: Client, home: str, changes: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    change(**changes)

    assert [viewer_client.get(home).status_code for _ in range(3)] == [200, 200, 200]
    assert sum("replica_failed" in record.getMessage() for record in caplog.records) == 1


def test_one_that_lacks_what_a_migration_made_is_left_alone(queue: Queue) -> None:
    tries: list[bool] = []

    @replica.from_replica
    def read() -> int:
        tries.append(replica._is_reading.get())
        if tries[-1]:
            raise ProgrammingError("relation does not exist")
        return Queue.objects.filter(pk=queue.pk).count()

    assert read() == 1
    assert read() == 1
    assert tries == [True, False, False]


def test_what_the_database_refuses_too_is_raised() -> None:
    @replica.from_replica
    def read() -> None:
        raise IntegrityError("no")

    with pytest.raises(IntegrityError):
        read()
    assert not replica._is_reading.get()


def test_whoever_writes_nevertheless_writes_to_the_database(queue: Queue) -> None:
    @replica.from_replica
    def write() -> Queue:
        assert Queue.objects.get(pk=queue.pk)._state.db == replica.ALIAS
        return make_queue(queue.project)

    assert write()._state.db == "default"


def test_its_address_is_read_from_the_environment() -> None:
    found = replica.settings_of({"NAME": "x", "OPTIONS": {"sslmode": "require"}})

    assert found["OPTIONS"] == {"connect_timeout": 3, "sslmode": "require", "server_side_binding": False}
    assert replica.Router().allow_migrate(replica.ALIAS, "jobs") is False
    assert replica.Router().allow_migrate("default", "jobs") is None
