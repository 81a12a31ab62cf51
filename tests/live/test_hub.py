"""The hub without a server: overflow, gaps, subsets."""

from __future__ import annotations

import asyncio
import json

import pytest

from jobs.events import IDS, Change, _bodies
from jobs.live import hub as hub_module
from jobs.live.hub import BACKLOG, Hub, Subscriber
from jobs.live.messages import RESYNC, News, Subset, joined, news_of_jobs
from jobs.live.people import Listener

PROJECT, QUEUE, JOB = (f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2, 3))
LISTENER = Listener("key:1", frozenset([PROJECT]), sees_shared_workers=False)


def hearing(*payloads: str) -> list[str]:
    """What a subscriber has in his backlog after the hub heard these."""

    async def run() -> list[str]:
        hub, subscriber = Hub(), Subscriber(LISTENER)
        hub._projects[QUEUE] = PROJECT
        hub._subscribers.add(subscriber)
        for payload in payloads:
            await hub._hear(f"2026-01-01T00:00:00Z {payload}")
        return await subscriber.take(0.01)

    return asyncio.run(run())


def job_message(number: int, **more: object) -> str:
    return json.dumps({"s": "a", "n": number, **more, "t": "job", "q": QUEUE, "j": [["queued", JOB]]})


def test_a_number_that_is_missing_is_a_resync():
    assert RESYNC not in hearing(job_message(5), job_message(6))
    assert RESYNC in hearing(job_message(5), job_message(7))
    assert RESYNC in hearing(job_message(5, g=1))


def test_a_lost_worker_is_a_resync():
    lost = json.dumps({"s": "b", "n": 1, "t": "worker", "p": None, "id": JOB, "e": "lost"})

    assert hearing(lost) == [RESYNC]  # and a key does not see the worker, which serves all


def test_a_full_backlog_gives_way_to_a_resync_and_goes_on():
    async def run() -> list[str]:
        subscriber = Subscriber(LISTENER)
        for _ in range(BACKLOG + 1):
            subscriber.say("x")
        subscriber.say("y")
        return await subscriber.take(0.01)

    assert asyncio.run(run()) == [RESYNC, "y"]


def test_many_who_come_at_once_ask_for_one_watch_and_are_told_once_to_look(monkeypatch):
    """As after a deploy. One of them leaves again meanwhile."""
    watched: list[float] = []

    async def watch(_do, _id, for_s: float) -> None:
        watched.append(for_s)
        await asyncio.sleep(0)

    monkeypatch.setattr(hub_module, "in_thread", watch)
    monkeypatch.setattr(hub_module, "SETTLE_S", 0.0)

    async def run() -> list[list[str]]:
        hub, is_over = Hub(), asyncio.Event()
        monkeypatch.setattr(hub._listener, "start", lambda: None)
        hub._listener.is_listening.set()
        backlogs: list[list[str]] = []

        async def come() -> None:
            async with hub.listen(LISTENER) as subscriber:
                await is_over.wait()
                backlogs.append(await subscriber.take(0.01))

        coming = [asyncio.create_task(come()) for _ in range(40)]
        await asyncio.sleep(0)
        coming[0].cancel()
        while hub._watching is None or not hub._watching.done() or hub._is_settling:
            await asyncio.sleep(0)
        is_over.set()
        await asyncio.gather(*coming, return_exceptions=True)
        await hub.stop()
        return backlogs

    assert asyncio.run(run()) == [[RESYNC]] * 39
    assert watched == [hub_module.WATCH_FOR_S]


@pytest.mark.parametrize(
    ("subsets", "count"),
    [
        ([Subset()], 2),
        ([], 0),
        ([Subset(project=PROJECT)], 2),
        ([Subset(project=QUEUE)], 0),
        ([Subset(queue=QUEUE, job=JOB)], 1),
        ([Subset(queue=JOB), Subset(job=JOB)], 1),
    ],
)
def test_subsets_choose(subsets: list[Subset], count: int):
    news = News(PROJECT, QUEUE, [(JOB, "a"), (QUEUE, "b")])

    assert len(news.for_subsets(subsets)) == count


def test_every_message_fits_a_notification_and_loses_nothing():
    changes = [Change(QUEUE, ("running", "dead_letter")[n % 2], f"{n:036d}") for n in range(IDS * 3 + 7)]
    bodies = _bodies(changes)

    assert max(len(json.dumps({"s": "x" * 32, "n": 10**9, "g": 1, **body})) for body in bodies) < 7_900
    told = [text for body in bodies for _, text in news_of_jobs(body, PROJECT, "now").items]
    assert [json.loads(text)["job"] for text in told] == [change.job_id for change in changes]
    assert len(json.loads(joined(told))["events"]) == len(changes)
