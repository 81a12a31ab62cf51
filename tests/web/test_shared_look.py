"""However many have a dashboard open: what their regions ask for is read once a moment."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from queues.models import Queue
from tests.factories import make_job

pytestmark = pytest.mark.django_db

REGION = {"HX-Request": "true"}
#: The session, the user, the membership.
WHO_ASKS = 3


def statements(client: Client, path: str, **headers: str) -> tuple[int, str]:
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(path, headers=headers)
    assert answer.status_code == 200
    return len(asked), answer.content.decode()


def test_a_second_viewers_region_reads_only_who_he_is(signed_in: Callable[[str], Client], home: str) -> None:
    owner, viewer = signed_in("owner"), signed_in("viewer")
    first, _ = statements(owner, home, **REGION)
    second, _ = statements(viewer, home, **REGION)

    assert first > WHO_ASKS
    assert second == WHO_ASKS


def test_a_page_that_is_opened_shows_what_is(signed_in: Callable[[str], Client], home: str, queue: Queue) -> None:
    viewer = signed_in("viewer")
    make_job(queue)
    statements(viewer, home, **REGION)
    Queue.objects.filter(pk=queue.pk).update(is_paused=True)

    _, text = statements(viewer, home)
    assert "is paused" in text
    _, text = statements(viewer, home, **REGION)
    assert "is paused" in text
