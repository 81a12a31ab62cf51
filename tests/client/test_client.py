"""The Python client against a real server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from punctual_client import Client, Conflict, Job, NewJob, NotFound, Unauthorized, ValidationFailed, WaitTimeout

from jobs.decisions import Succeeded
from queues.models import Queue
from tests.factories import claim_one, end, make_jobs, path_of, reload
from tests.personas import make_key
from tests.processes import ROOT
from tests.servers import web_server
from tests.threads import run_together
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def url(committed_queue: Queue, unused_port: int) -> Iterator[str]:
    with web_server(unused_port) as address:
        yield address


def test_a_client_does_all_it_says(url, committed_queue):
    """One server for all: its start is most of the time."""
    with Client(url, api_key=make_key(committed_queue.project)) as client:
        _submits(client, committed_queue)
        _waits(client, committed_queue)
        _lists(client, committed_queue)
        _cancels_and_retries(client, committed_queue)
        _raises(client, url, committed_queue)
        _curl(url, make_key(committed_queue.project), committed_queue)


def _submits(client: Client, queue: Queue) -> None:
    for named in (queue.name, path_of(queue), str(queue.pk)):
        job = client.submit("mail.send", {"to": named}, queue=named, priority=3)
        assert (job.status, job.priority, job.is_replay) == ("queued", 3, False)
        assert client.get(job.id).payload == {"to": named}
    later = datetime.now(UTC) + timedelta(hours=1)
    assert client.submit("x", queue=queue.name, run_at=later).run_at == later
    first, again = (client.submit("x", {"a": 1}, queue=queue.name, idempotency_key="k") for _ in range(2))
    assert (again.id, again.is_replay) == (first.id, True)
    with pytest.raises(Conflict):
        client.submit("x", {"a": 2}, queue=queue.name, idempotency_key="k")


def _waits(client: Client, queue: Queue) -> None:
    job = client.submit("x", queue=queue.name, priority=100)

    def wait() -> Job | None:
        return client.wait(job.id, timeout_s=30)

    def finish() -> None:
        lease = wait_until(lambda: claim_one(queue), what="the job")
        assert lease.job_id == job.id
        end(lease, Succeeded('{"sent": 1}'))

    done, _ = run_together([wait, finish])
    assert done is not None
    assert (done.status, done.result, done.has_ended) == ("completed", {"sent": 1}, True)
    waiting = client.submit("x", queue=queue.name)
    with pytest.raises(WaitTimeout):
        client.wait(waiting.id, timeout_s=0.2)


def _lists(client: Client, queue: Queue) -> None:
    made = make_jobs(queue, 450, "listed")
    found = client.list(queue_id=str(queue.pk), job_type="listed")
    first = next(found)
    make_jobs(queue, 5, "listed")  # must not shift the pages

    ids = [first.id, *(job.id for job in found)]

    assert ids == sorted((str(job.id) for job in made), reverse=True)
    assert len(list(client.list(limit=7))) == 7
    items = client.submit_many([NewJob("many", {"n": n}) for n in range(1_001)], queue=queue.name)
    assert [item.index for item in items] == list(range(1_001))
    assert len({item.id for item in items}) == 1_001
    bad = [NewJob("many", queue="no-such-queue"), NewJob("many", queue=queue.name)]
    wrong, right = client.submit_many(bad, atomic=False)
    assert isinstance(wrong.error, NotFound)
    assert right.error is None
    assert right.is_new


def _cancels_and_retries(client: Client, queue: Queue) -> None:
    job = client.submit("x", queue=queue.name)
    assert client.cancel(job.id, reason="no") == "cancelled"
    assert reload(job.id).error_message == "no"
    with pytest.raises(Conflict):
        client.cancel(job.id)
    assert client.retry(job.id) == "queued"
    with pytest.raises(Conflict):
        client.retry(job.id)


def _raises(client: Client, url: str, queue: Queue) -> None:
    with pytest.raises(NotFound):
        client.get("0193f6c1-7a2b-7c3d-8e4f-5a6b7c8d9e0f")
    with pytest.raises(ValidationFailed) as raised:
        client.submit("x", queue=queue.name, priority=10**9)
    assert raised.value.details[0].field == "priority"
    with Client(url, api_key="pk_live_" + "0" * 36) as stranger, pytest.raises(Unauthorized):
        stranger.get("0193f6c1-7a2b-7c3d-8e4f-5a6b7c8d9e0f")


def _curl(url: str, key: str, queue: Queue) -> None:
    """The example for curl, as it stands in the documentation."""
    text = (ROOT / "docs" / "python-client.md").read_text(encoding="utf-8")
    script = text.split("```sh\n")[1].split("```")[0]
    env = {"PATH": os.environ["PATH"], "PUNCTUAL_URL": url, "PUNCTUAL_KEY": key, "QUEUE": queue.name}

    done = subprocess.run(["sh", "-eu", "-c", script], env=env, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
    assert '"job_type":"mail.send"' in done.stdout
    assert '"status":"cancelled"' in done.stdout
