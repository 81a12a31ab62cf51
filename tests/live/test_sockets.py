"""The socket of live events, over a real server: who may listen, what he hears, and how it ends."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from django.test import Client
from websockets.exceptions import InvalidStatus

from accounts.tokens import issue
from jobs.lifecycle.cancel import cancel_job
from jobs.lifecycle.promote import promote_due
from jobs.services.workers import register
from orgs.models import ApiKey, Role
from queues.models import Queue
from tests.factories import make_due, make_job, make_jobs, make_project, make_queue
from tests.live.sockets import Socket, listening
from tests.personas import Api, make_key, make_member
from tests.processes import worker
from tests.servers import web_process, web_server
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def sql(statement: str, *params: Any) -> list[tuple[Any, ...]]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return list(cursor.fetchall()) if cursor.description else []


def status_of_refusal(*args, **kwargs) -> int:
    with pytest.raises(InvalidStatus) as refused, listening(*args, **kwargs):
        pass
    return refused.value.response.status_code


def test_a_job_is_followed_from_its_submission_to_its_end(committed_queue: Queue, unused_port):
    key = make_key(committed_queue.project, ApiKey.Scope.READ)
    with web_server(unused_port) as url, listening(url, X_API_Key=key) as socket, worker():
        assert socket.until(lambda event: True) == {"type": "hello"}
        socket.settled()
        job = make_job(committed_queue)

        # Each process tells for itself: what two of them tell within a moment may come in either order.
        statuses = socket.statuses_until(job.pk, "completed")
        assert (set(statuses), statuses[-1]) == ({"queued", "claimed", "completed"}, "completed")
        told = socket.seen[-1]
        assert (told["type"], told["project"], told["queue"]) == (
            "job", str(committed_queue.project_id), str(committed_queue.pk),
        )  # fmt: skip
        assert told["at"].endswith("Z")


def test_another_tenants_events_never_arrive(committed_queue: Queue, unused_port):
    foreign = make_queue(make_project())
    key = make_key(committed_queue.project)
    with web_server(unused_port) as url, listening(url, X_API_Key=key) as socket:
        socket.settled()
        theirs = make_jobs(foreign, 5)
        refused = socket.say({"subscribe": {"project": str(foreign.project_id)}})
        socket.say({"subscribe": {"queue": str(foreign.pk)}})
        socket.say({"subscribe": {"job": str(theirs[0].id)}})
        socket.say({"subscribe": {}})
        make_jobs(foreign, 5)
        register(queue_names=(), seats=1)
        mine = make_job(committed_queue)

        assert socket.statuses_until(mine.pk, "queued") == ["queued"]
        assert refused == {"type": "error", "message": "there is no such project"}
        assert {event["project"] for event in socket.seen if "project" in event} == {str(committed_queue.project_id)}
        assert not [event for event in socket.seen if event["type"] == "worker"]


def test_every_way_to_sign_in_and_no_other(committed_queue: Queue, unused_port):
    organization = committed_queue.project.organization
    user = make_member(organization, Role.VIEWER)
    client = Client()
    client.force_login(user)
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    key, revoked = make_key(committed_queue.project), make_key(committed_queue.project)
    ApiKey.objects.filter(prefix=revoked[:14]).update(revoked_at="2020-01-01T00:00:00Z")
    work = make_key(committed_queue.project, ApiKey.Scope.WORK)
    ticket = Api(user).post("ws-tickets").json()["ticket"]
    old = Api(user).post("ws-tickets").json()["ticket"]
    with web_server(unused_port) as url:
        foreign = "https://evil.example"
        for headers in (
            {"Cookie": cookie},
            {"Cookie": cookie, "origin": url},
            {"Authorization": f"Bearer {issue(user).access}"},
            {"Authorization": f"Api-Key {key}"},
            {"X_API_Key": key},
        ):
            with listening(url, **headers) as socket:
                assert socket.until(lambda event: True)["type"] == "hello", headers
            assert status_of_refusal(url, **{**headers, "origin": foreign}) == 403
        assert status_of_refusal(url, f"?ticket={ticket}", origin=foreign) == 403
        with listening(url, f"?ticket={ticket}", origin=url) as socket:
            assert socket.until(lambda event: True)["type"] == "hello"
        from orgs.models import LiveTicket

        LiveTicket.objects.update(expires_at="2020-01-01T00:00:00Z")
        for query, headers in (
            ("", {}),
            (f"?ticket={ticket}", {}),
            (f"?ticket={old}", {}),
            ("?ticket=x", {}),
            ("", {"Cookie": "sessionid=unknown"}),
            ("", {"Authorization": "Bearer x"}),
            ("", {"Authorization": f"Bearer {issue(user).refresh}"}),
            ("", {"X_API_Key": revoked}),
            ("", {"X_API_Key": work}),
            ("", {"X_API_Key": key, "origin": "null"}),
        ):
            assert status_of_refusal(url, query, **headers) == 403, (query, headers)


def test_subsets_are_kept_and_nonsense_is_answered(committed_queue: Queue, unused_port):
    other = make_queue(committed_queue.project)
    key = make_key(committed_queue.project)
    with web_server(unused_port) as url, listening(url, X_API_Key=key) as socket:
        socket.settled()
        assert socket.say({"subscribe": {"queue": str(other.pk)}})["subsets"] == [{"queue": str(other.pk)}]
        hidden, shown = make_job(committed_queue), make_job(other)
        socket.statuses_until(shown.pk, "queued")
        socket.say({"subscribe": {"job": str(hidden.pk)}})
        cancel_job(hidden.pk, reason="x")

        assert socket.statuses_until(hidden.pk, "cancelled") == ["cancelled"]
        assert socket.say({"unsubscribe": {"queue": str(other.pk)}})["subsets"] == [{"job": str(hidden.pk)}]
        nonsense: object
        for nonsense in ([], 1, {}, {"subscribe": 1}, {"subscribe": {"queue": 1}}, {"subscribe": {"x": "y"}},
                         {"subscribe": {"job": "x" * 36}}, {"subscribe": {}, "unsubscribe": {}}):  # fmt: skip
            assert socket.say(nonsense)["type"] == "error", nonsense
        for raw in ("{", "[" * 50_000, b"\x00", ""):
            socket.connection.send(raw)
            assert socket.until(lambda event: True)["type"] == "error"


def test_promotion_queues_workers_and_waiting_jobs_are_told(committed_queue: Queue, unused_port):
    from jobs.decisions import Succeeded
    from jobs.lease import Ending
    from jobs.lifecycle.settle import settle
    from jobs.lifecycle.submit import Parent
    from scheduler_project.lib.ids import uuid7
    from tests.factories import claim_one

    owner = make_member(committed_queue.project.organization, Role.OWNER)
    api = Api(owner)
    later = make_job(committed_queue, delay_s=3_600)
    with web_server(unused_port) as url, listening(url, **api.headers) as socket:
        socket.settled()
        make_due(later)
        promote_due(limit=10)
        socket.statuses_until(later.pk, "queued")
        child = make_job(committed_queue, depends_on=[Parent(later.pk)])
        settle([Ending.of(claim_one(committed_queue), Succeeded(None), str(uuid7()))])
        assert socket.statuses_until(child.pk, "queued") == ["scheduled", "queued"]
        api.post(f"queues/{committed_queue.pk}/pause")
        paused = socket.until(lambda event: event["type"] == "queue")
        assert (paused["queue"], paused["event"]) == (str(committed_queue.pk), "paused")
        register(queue_names=(), seats=1)
        assert socket.until(lambda event: event["type"] == "worker")["event"] == "started"


def test_a_revoked_key_ends_its_socket(committed_queue: Queue, unused_port):
    key = make_key(committed_queue.project)
    viewer = make_member(committed_queue.project.organization, Role.VIEWER)
    bearer = f"Bearer {issue(viewer).access}"
    with (
        web_server(unused_port, APP_EVENTS_RECHECK_SECS="1") as url,
        listening(url, X_API_Key=key) as of_key,
        listening(url, Authorization=bearer) as of_person,
    ):
        of_person.say({"subscribe": {"project": str(committed_queue.project_id)}})
        ApiKey.objects.update(revoked_at="2020-01-01T00:00:00Z")
        viewer.memberships.all().delete()

        assert of_key.closed_with() == 4401
        assert of_person.closed_with() == 4403


def test_a_killed_listener_comes_back_and_asks_all_to_look_again(committed_queue: Queue, unused_port):
    key = make_key(committed_queue.project)
    with web_server(unused_port) as url, listening(url, X_API_Key=key) as socket:
        socket.settled()
        here = "application_name = 'punctual events' and datname = current_database()"
        [(pid,)] = sql(f"select pid from pg_stat_activity where {here}")
        sql("select pg_terminate_backend(%s)", pid)
        socket.settled()
        job = make_job(committed_queue)

        assert socket.statuses_until(job.pk, "queued") == ["queued"]


def test_sockets_end_with_1012_at_a_deploy_and_the_process_soon_after(committed_queue: Queue, unused_port):
    key = make_key(committed_queue.project)
    with (
        web_process(unused_port) as (web, url),
        listening(url, X_API_Key=key) as first,
        listening(url, X_API_Key=key) as second,
    ):
        first.settled()
        web.send(signal.SIGTERM)

        assert first.closed_with() == second.closed_with() == 1012
        assert web.wait(20) == 0


def test_limits_are_told_and_sockets_hold_no_database_connection(committed_queue: Queue, unused_port):
    key, other = make_key(committed_queue.project), make_key(committed_queue.project)
    limits = {"APP_EVENTS_MAX_PER_USER": "20", "APP_EVENTS_MAX_CONNECTIONS": "21"}
    from contextlib import ExitStack

    before = sql("select count(*) from pg_stat_activity where datname = current_database()")[0][0]
    with web_server(unused_port, **limits) as url, ExitStack() as stack:
        sockets: list[Socket] = [stack.enter_context(listening(url, X_API_Key=key)) for _ in range(20)]
        over_user = stack.enter_context(listening(url, X_API_Key=key))
        assert over_user.closed_with() == 4429
        sockets.append(stack.enter_context(listening(url, X_API_Key=other)))
        over_all = stack.enter_context(listening(url, X_API_Key=other))
        assert over_all.closed_with() == 4429
        sockets[0].settled()

        held = sql("select count(*) from pg_stat_activity where datname = current_database()")[0][0]
        assert held - before <= 4  # a few threads of pages, the sockets' thread, the listener
        sockets[0].connection.close()
        wait_until(lambda: _is_let_in(url, key), what="room for another")


def _is_let_in(url: str, key: str) -> bool:
    with listening(url, X_API_Key=key) as socket:
        try:
            return bool(socket.until(lambda event: True)["type"] == "hello")
        except Exception:  # noqa: BLE001 - closed
            return False


def test_whoever_reads_nothing_is_told_to_look_again_and_nothing_is_lost_unsaid(committed_queue: Queue, unused_port):
    key = make_key(committed_queue.project)
    with web_server(unused_port) as url, listening(url, X_API_Key=key) as slow, listening(url, X_API_Key=key) as quick:
        quick.settled()
        slow.settled()
        quick.seen.clear()
        slow.seen.clear()
        made = {str(item.id) for item in make_jobs(committed_queue, 20_000)}
        quick.until(lambda event: event.get("job") in made)
        last = make_job(committed_queue)
        for socket in (quick, slow):
            socket.statuses_until(last.pk, "queued")

        for socket in (quick, slow):
            told = {event["job"] for event in socket.seen if event["type"] == "job"}
            assert made - told == set() or {"type": "resync"} in socket.seen
