"""The dashboard: how deep queues were, in a range, and since when somebody should look."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from dlq.models import DeadLetter
from jobs.models import WHOLE_PROJECT, QueueDepth
from jobs.services.statistics import look_at_all_queues
from queues.models import Queue
from scheduler_project.lib.sql import database_now
from tests.factories import job_in, make_jobs, make_queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(signed_in) -> Client:
    made: Client = signed_in("viewer")
    return made


def chart(html: str, title: str) -> str:
    """The figure of this title."""
    figures: list[str] = re.findall(r'<figure class="chart">.*?</figure>', html, re.DOTALL)
    return next(one for one in figures if title in one)


def keep(queue: Queue, minutes_ago: int, ready: int) -> None:
    at = database_now().replace(second=0, microsecond=0) - timedelta(minutes=minutes_ago)
    for of in (WHOLE_PROJECT, queue.pk):
        QueueDepth.objects.create(
            project_id=queue.project_id, queue_id=of, at=at, ready=ready, scheduled=3, in_flight=2, dead_letters=1
        )


@pytest.mark.parametrize("path", ["", "queues/{queue}"])
def test_depth_is_drawn_and_told_for_the_range_that_is_asked_for(client, home, queue, path):
    keep(queue, 5, ready=41)
    keep(queue, 45, ready=17)
    page = home + path.format(queue=queue.pk)

    hour, quarter = (
        chart(client.get(f"{page}?range={name}").content.decode(), "Queue depth") for name in ("1h", "15m")
    )

    assert "<td>41</td><td>2</td>" in hour
    assert "<td>17</td><td>2</td>" in hour
    assert "<td>41</td><td>2</td>" in quarter
    assert "<td>17</td>" not in quarter
    assert quarter.count('class="line c-queued" d="M') == 1


def test_what_was_open_is_told_by_its_status(client, home, queue):
    keep(queue, 5, ready=41)

    drawn = chart(client.get(home).content.decode(), "Open jobs by status")

    assert "<td>1</td><td>2</td><td>41</td><td>3</td>" in drawn
    assert drawn.count('class="bar') == 4


def test_charts_say_that_nobody_counted(client, home, queue):
    for title, path in (("Queue depth", ""), ("Open jobs by status", ""), ("Queue depth", f"queues/{queue.pk}")):
        assert "Nobody counted in this range." in chart(client.get(home + path).content.decode(), title)


def test_a_queue_does_not_show_the_depth_of_others(client, home, queue, project):
    make_jobs(make_queue(project), 7)
    look_at_all_queues()

    assert "<td>7</td>" in chart(client.get(home).content.decode(), "Queue depth")
    own = chart(client.get(f"{home}queues/{queue.pk}").content.decode(), "Queue depth")
    assert "<td>7</td>" not in own
    assert "Nobody counted" not in own


def test_dead_letters_need_attention_since_the_oldest_open_one(client, home, queue, project):
    for status in ("dead_letter", "dead_letter"):
        job_in(status, make_queue(project))
    oldest, newest = DeadLetter.objects.order_by("id")
    DeadLetter.objects.filter(pk=oldest.pk).update(moved_at=database_now() - timedelta(hours=5))

    def since() -> str:
        html = client.get(home).content.decode()
        row = next(li for li in re.findall(r"<li[ >].*?</li>", html, re.DOTALL) if "for a decision" in li)
        found = re.search(r'since <time datetime="([^"]+)"', row)
        return found[1] if found else "never"

    oldest.refresh_from_db()
    assert since().startswith(f"{oldest.moved_at:%Y-%m-%dT%H:%M:%S}")
    DeadLetter.objects.filter(pk=oldest.pk).update(
        resolved=True, resolved_at=database_now(), resolution_action="discarded"
    )
    assert since().startswith(f"{newest.moved_at:%Y-%m-%dT%H:%M:%S}")
