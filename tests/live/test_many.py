"""Many sockets on one web process: nothing is lost unsaid, and nobody hears another tenant's events.

``FULL=1``, or ``SOCKETS=400 SOCKET_EVENTS=5000``, is the size that is promised.
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from orgs.models import ApiKey
from queues.models import Queue
from tests.factories import make_jobs, make_project, make_queue
from tests.personas import make_key
from tests.servers import web_process
from tests.sizes import size
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

SOCKETS, EVENTS = size("SOCKETS", suite=20, full=400), size("SOCKET_EVENTS", suite=500, full=5_000)
#: Of another tenant, at the same process.
FOREIGN_SOCKETS = 5
BULK = 50


@dataclass(slots=True)
class Ear:
    """What one socket has heard."""

    is_there: bool = False
    jobs: set[str] = field(default_factory=set)
    projects: set[str] = field(default_factory=set)
    #: Of them, one may be due to the beginning: publishers may not have known yet that somebody looks.
    resyncs: int = 0
    gaps: int = 0
    messages: int = 0
    end: str = ""

    def hear(self, event: dict[str, Any]) -> None:
        self.is_there = True
        if event["type"] == "resync":
            self.resyncs += 1
            self.gaps += bool(self.jobs)
        elif event["type"] == "job":
            self.jobs.add(event["job"])
            self.projects.add(event["project"])


async def _listen(url: str, key: str, ear: Ear) -> None:
    address = f"{url.replace('http', 'ws', 1)}/ws/events"
    more: dict[str, Any] = {"compression": None, "proxy": None, "max_size": None, "open_timeout": 60}
    try:
        async with connect(address, additional_headers={"X-API-Key": key}, **more) as socket:
            async for text in socket:
                message = json.loads(text)
                ear.messages += 1
                for event in message["events"] if message["type"] == "batch" else [message]:
                    ear.hear(event)
    except ConnectionClosed as closed:
        ear.end = str(closed)


@contextmanager
def listening(url: str, ears: dict[str, list[Ear]]) -> Iterator[None]:
    """Sockets, by the key they show, in a thread with an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="sockets")
    thread.start()
    tasks = [
        asyncio.run_coroutine_threadsafe(_listen(url, key, ear), loop) for key, some in ears.items() for ear in some
    ]
    try:
        wait_until(lambda: all(ear.is_there for some in ears.values() for ear in some), 60 + SOCKETS / 4)
        yield
    finally:
        for task in tasks:
            task.cancel()
        wait_until(lambda: all(task.done() for task in tasks), 60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


@pytest.mark.timeout(900)
def test_each_of_many_sockets_hears_all_of_its_tenant_and_nothing_of_another(
    committed_queue: Queue, unused_port: int
) -> None:
    foreign = make_queue(make_project())
    mine, theirs = [Ear() for _ in range(SOCKETS)], [Ear() for _ in range(FOREIGN_SOCKETS)]
    keys = [make_key(queue.project, ApiKey.Scope.READ) for queue in (committed_queue, foreign)]
    made: set[str] = set()
    of_others: set[str] = set()
    limits = {
        "APP_EVENTS_MAX_PER_USER": str(SOCKETS + FOREIGN_SOCKETS),
        "APP_EVENTS_MAX_CONNECTIONS": str(SOCKETS + FOREIGN_SOCKETS),
    }
    with web_process(unused_port, **limits) as (web, url), listening(url, dict(zip(keys, (mine, theirs), strict=True))):
        # The first resync: from now on publishers know that somebody looks.
        wait_until(lambda: mine[0].resyncs and theirs[0].resyncs, 60)
        began = time.monotonic()
        while len(made) < EVENTS:
            made |= {str(job.id) for job in make_jobs(committed_queue, BULK)}
            of_others |= {str(job.id) for job in make_jobs(foreign, 5)}
            # As fast as one listener hears of it: the others may lag behind.
            wait_until(has_heard(mine[0], made), 120)
        wait_until(lambda: all(has_heard(ear, made)() for ear in mine), 300)
        wait_until(lambda: all(has_heard(ear, of_others)() for ear in theirs), 60)
        took_s = time.monotonic() - began
        failed = [ear.end for ear in mine + theirs if ear.end]
        web.send(signal.SIGTERM)
        web.wait(60)

    heard = sum(len(ear.jobs) for ear in mine)
    print(
        f"\n{SOCKETS} sockets, {len(made)} events to each: {heard} of {SOCKETS * len(made)} heard in {took_s:.1f} s"
        f" ({heard / took_s:.0f}/s), {sum(ear.messages for ear in mine)} messages,"
        f" {sum(ear.gaps for ear in mine)} resyncs for a gap, {len(failed)} closed"
    )
    # One at the beginning, not one for each who came.
    assert max(ear.resyncs - ear.gaps for ear in mine + theirs) <= 2
    assert not failed
    assert all(ear.jobs == made or (ear.gaps and ear.jobs < made) for ear in mine)
    assert {project for ear in mine for project in ear.projects} == {str(committed_queue.project_id)}
    assert {project for ear in theirs for project in ear.projects} == {str(foreign.project_id)}


def has_heard(ear: Ear, made: set[str]) -> Callable[[], bool]:
    """Has it heard of all of them, or been told that it missed something?"""
    return lambda: bool(ear.gaps or ear.end) or len(ear.jobs) >= len(made)
