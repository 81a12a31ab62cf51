"""Live events over loopback: many sockets on one web process, and what listeners cost a worker."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg

from jobs.bench.api import free_port, make_manage_key, start_web, wait_until_ready
from jobs.bench.stage import Say, drain_rate, make_queue
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

SOCKETS = 400
PUBLISH = "select set_config('synchronous_commit', 'off', true), pg_notify('punctual_events', %s)"
#: Messages a second; the client and the server share this machine.
PACE_S = 0.05


@dataclass(slots=True)
class _Tally:
    events: int = 0
    resyncs: int = 0
    late_ms: list[float] = field(default_factory=list)


def live(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """``jobs`` events to each of 400 sockets; then a drain without and with a listener."""
    with scratch.connect() as session:
        queue_id = make_queue(session, "live")
        key = make_manage_key(session)
    port = free_port()
    web = start_web(scratch, port, APP_EVENTS_MAX_PER_USER=str(SOCKETS + 1))
    try:
        wait_until_ready(port, key)
        say(f"{SOCKETS} sockets, {jobs:,} events to each")
        tallies = asyncio.run(_listen(scratch, port, key, str(queue_id), jobs))
        late = sorted(ms for tally in tallies for ms in tally.late_ms)
        lost = sum(1 for tally in tallies if tally.events < jobs and not tally.resyncs)
        figures = [
            Figure("delivered", sum(tally.events for tally in tallies), "events", float(SOCKETS * jobs)),
            Figure("resyncs", sum(tally.resyncs for tally in tallies)),
            Figure("lost_unsaid", lost, "sockets", 0.0, is_most=True),
            Figure("late_p50", statistics.median(late), "ms"),
            Figure("late_p95", statistics.quantiles(late, n=20)[-1], "ms"),
        ]
        count = max(jobs * 4, 1_000)
        drain_rate(scratch, queue_id, count)
        say(f"drain of {count:,}, nobody listens")
        without = statistics.median(drain_rate(scratch, queue_id, count) for _ in range(3))
        say("drain, one listens")
        heard = statistics.median(asyncio.run(_drain_heard(scratch, port, key, queue_id, count)) for _ in range(3))
    finally:
        web.terminate()
        web.wait(30)
    return [*figures, Figure("drain_unheard", without, "jobs/s"), Figure("drain_heard", heard, "jobs/s"),
            Figure("heard_of_unheard", heard / without)]  # fmt: skip


async def _listen(scratch: Scratch, port: int, key: str, queue_id: str, events: int) -> list[_Tally]:
    sockets = [await _open(port, key) for _ in range(SOCKETS)]
    await asyncio.gather(*(_until_resync(socket) for socket in sockets[:1]))
    tallies = [_Tally() for _ in sockets]
    reading = [asyncio.create_task(_read(s, t, events)) for s, t in zip(sockets, tallies, strict=True)]
    await asyncio.to_thread(_publish, scratch, queue_id, events)
    await asyncio.wait(reading, timeout=120)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, *(socket.close() for socket in sockets), return_exceptions=True)
    return tallies


async def _open(port: int, key: str) -> ClientConnection:
    from websockets.asyncio.client import connect  # of the development requirements

    address = f"ws://127.0.0.1:{port}/ws/events"
    return await connect(address, additional_headers={"X-API-Key": key}, compression=None, proxy=None, max_size=None)


async def _until_resync(socket: ClientConnection) -> None:
    while '"resync"' not in str(await socket.recv()):
        pass


async def _read(socket: ClientConnection, tally: _Tally, events: int) -> None:
    """Count events; the moment of sending stands in the status. The last one ends it."""
    while True:
        message = json.loads(await socket.recv())
        now = time.time()
        for event in message["events"] if message["type"] == "batch" else [message]:
            if event["type"] == "resync" and tally.events:  # the one at the beginning is no loss
                tally.resyncs += 1
            elif event["type"] == "job":
                tally.events += 1
                tally.late_ms.append((now - float(event["status"])) * 1000)
                if int(event["job"][-12:]) == events - 1:
                    return


def _publish(scratch: Scratch, queue_id: str, events: int) -> None:
    """As a worker does: a message every 50 ms with what has changed."""
    with psycopg.connect(scratch.url, autocommit=True) as session:
        for number, first in enumerate(range(0, events, 50), 1):
            ids = [f"00000000-0000-0000-0000-{n:012d}" for n in range(first, min(events, first + 50))]
            body: dict[str, Any] = {
                "s": "bench",
                "n": number,
                "t": "job",
                "q": queue_id,
                "j": [[str(time.time()), *ids]],
            }
            session.execute(PUBLISH, [f"bench {json.dumps(body)}"])
            time.sleep(PACE_S)


async def _drain_heard(scratch: Scratch, port: int, key: str, queue_id: Any, count: int) -> float:
    async def listen() -> None:
        async for _ in socket:
            pass

    socket = await _open(port, key)
    reading = asyncio.create_task(listen())
    try:
        return await asyncio.to_thread(drain_rate, scratch, queue_id, count)
    finally:
        await socket.close()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
