"""A connection's health before a request: nothing is asked while the server is silent, and no dead session is used."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler_project.lib.pg import direct_parameters
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def checked(monkeypatch):
    """The connection as a web process uses it: kept between requests, and looked at before each."""
    monkeypatch.setitem(connection.settings_dict, "CONN_HEALTH_CHECKS", True)
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 60)
    connection.close()
    connection.ensure_connection()
    yield connection
    connection.close()


def pid_in_new_request(checked) -> int:
    checked.close_if_unusable_or_obsolete()  # what Django does at the begin of a request
    with checked.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        pid: int = cursor.fetchone()[0]
    return pid


def test_a_healthy_session_is_kept_and_not_asked(checked, monkeypatch):
    pid = pid_in_new_request(checked)

    with CaptureQueriesContext(checked) as queries:
        assert pid_in_new_request(checked) == pid
    assert len(queries) == 1

    # The check itself bypasses what Django records.
    monkeypatch.setattr(checked, "is_usable", lambda: pytest.fail("the server was asked"))
    pid_in_new_request(checked)


def test_a_session_the_server_ended_is_replaced_before_it_is_used(checked):
    pid = pid_in_new_request(checked)
    with psycopg.connect(**direct_parameters(), autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s)", [pid])
        sessions = "select count(*) from pg_stat_activity where pid = %s"
        wait_until(lambda: other.execute(sessions, [pid]).fetchone() == (0,), 10)

    assert pid_in_new_request(checked) != pid


def test_a_session_that_is_told_something_is_asked_and_kept(checked):
    pid = pid_in_new_request(checked)
    with checked.cursor() as cursor:
        cursor.execute("listen of_no_importance")
    with psycopg.connect(**direct_parameters(), autocommit=True) as other:
        other.execute("notify of_no_importance")

    assert pid_in_new_request(checked) == pid
