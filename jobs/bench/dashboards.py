"""Two hundred open dashboards on one web process: what they add to the database's load while a worker drains."""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import time
from dataclasses import dataclass, field

import httpx
import psycopg

from jobs.bench.api import free_port, start_web, wait_until_ready
from jobs.bench.stage import RELEASE, Say, backends, cpu_s, fill, make_queue, pause, workers
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

DASHBOARDS, QUEUES = 200, 50
PAGE = "/p/bench/bench/"
#: As the pages' own script does it: every two seconds, less often while answers take longer than one.
PACE_S, SLOW_S, MOST_PATIENT = 2.0, 1.0, 30
WATCH_S, SETTLE_S = 20.0, 5.0
PROGRAM = [sys.executable, "-m", "jobs.bench.sign_in_here"]


@dataclass(slots=True)
class _Tally:
    took_ms: list[float] = field(default_factory=list)
    failed: int = 0


def dashboards(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """The processor time of the sessions that work, without dashboards, and of the web process's, with them."""
    with scratch.connect() as session:
        queue_id = make_queue(session, "drained")
        for number in range(QUEUES):
            make_queue(session, f"beside {number}")
        pause(scratch, queue_id)
        say(f"filling {jobs:,} jobs")
        fill(scratch, queue_id, jobs)
        cookies = scratch.run(PROGRAM, "", DJANGO_SETTINGS_MODULE="scheduler_project.settings")
        scheduler = scratch.start("runscheduler")
        try:
            with workers(scratch, 1, "--concurrency", "100"):
                session.execute(RELEASE, [[queue_id]])
                time.sleep(SETTLE_S)
                say("a drain that nobody looks at")
                working = set(backends(session))
                alone = _load(working, WATCH_S)
                tally = _Tally()
                say(f"the same with {DASHBOARDS} dashboards open")
                added, drained = _beside(scratch, session, working, cookies, tally)
                left = scratch.value("select count(*) from jobs where status = 'queued'")
        finally:
            scheduler.terminate()
            scheduler.wait(30)
    if not left:
        raise RuntimeError("the drain was over before the measure; use more --jobs")
    return [
        Figure("load_alone", 100 * alone, "% of a core"),
        Figure("load_beside_dashboards", 100 * drained, "% of a core"),
        Figure("load_of_dashboards", 100 * added, "% of a core"),
        Figure("dashboards_of_alone", added / alone, "", 0.1, is_most=True),
        Figure("answers", len(tally.took_ms) / WATCH_S, "1/s"),
        Figure("answer_p50", statistics.median(tally.took_ms), "ms"),
        Figure("answers_failed", tally.failed, "", 0.0, is_most=True),
    ]


def _beside(
    scratch: Scratch, session: psycopg.Connection[tuple[object, ...]], working: set[int], cookies: str, tally: _Tally
) -> tuple[float, float]:
    """The load of the web process's sessions and of those that work, while the dashboards are open."""
    port = free_port()
    web = start_web(scratch, port)
    try:
        wait_until_ready(port, "")

        async def watch() -> tuple[float, float]:
            limits = httpx.Limits(max_connections=DASHBOARDS, max_keepalive_connections=DASHBOARDS)
            headers = {"Cookie": cookies, "HX-Request": "true"}
            url = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=20) as client:
                tasks = [asyncio.create_task(_look(client, tally)) for _ in range(DASHBOARDS)]
                await asyncio.sleep(SETTLE_S)
                tally.took_ms.clear()
                found = await asyncio.to_thread(_loads, session, working)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            return found

        return asyncio.run(watch())
    finally:
        web.terminate()
        web.wait(30)


def _load(pids: set[int], seconds: float) -> float:
    """Processor seconds a second of these sessions."""
    before, began = cpu_s(sorted(pids)), time.monotonic()
    time.sleep(seconds)
    return (cpu_s(sorted(pids)) - before) / (time.monotonic() - began)


def _loads(session: psycopg.Connection[tuple[object, ...]], working: set[int]) -> tuple[float, float]:
    of_web = sorted(set(backends(session)) - working)
    before, worked = cpu_s(of_web), cpu_s(sorted(working))
    began = time.monotonic()
    time.sleep(WATCH_S)
    took = time.monotonic() - began
    return (cpu_s(of_web) - before) / took, (cpu_s(sorted(working)) - worked) / took


async def _look(client: httpx.AsyncClient, tally: _Tally) -> None:
    """One open dashboard."""
    version, patience = "", 1
    await asyncio.sleep(random.uniform(0, PACE_S))  # noqa: S311 - they were not opened in one moment
    while True:
        began = time.monotonic()
        try:
            answer = await client.get(PAGE, headers={"X-Live-Version": version})
            took = time.monotonic() - began
            tally.failed += answer.status_code not in (200, 204)
            version = answer.headers.get("X-Live-Version", "")
            tally.took_ms.append(took * 1000)
            patience = min(patience * 2, MOST_PATIENT) if took > SLOW_S else 1
        except httpx.HTTPError:
            tally.failed += 1
            patience = min(patience * 2, MOST_PATIENT)
        await asyncio.sleep(PACE_S * patience)
