"""The cases of tests/cases/api.json, as they stand there; the tables below say what they mean here."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.services import register_user
from accounts.tokens import issue
from dlq.models import DeadLetter
from jobs.decisions import Failed, Succeeded
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.live import socket
from jobs.live.hub import Hub
from jobs.models import Job
from jobs.services.batches import fold_batches
from jobs.services.schedules import create_schedule
from orgs.keys import hash_key
from orgs.models import ApiKey, Role
from queues.backoff import RetryRule, delay_s
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, claim_one, make_job, make_project, make_queue, path_of, status_of
from tests.personas import Api, all_items, make_key, make_member

CASES = json.loads((Path(__file__).parents[1] / "cases" / "api.json").read_text())

#: Their field -> ours. The inline retry policy is a resource of its own here.
FIELDS = {
    "timeout_seconds": "timeout_s",
    "handler": "job_type",
    "concurrency": "max_concurrency",
    "cron": "cron_expression",
}
RESOURCES = {"schedules": "scheduled-jobs"}
POLICY_FIELDS = {"kind": "strategy", "base_delay": "base_delay_ms", "factor": "multiplier", "max_delay": "max_delay_ms"}
#: The action of a page that a case means.
PAGE_ACTION = "dashboard cancel action, session cookie, no CSRF token"


class World:
    """The objects that cases name, made when they are asked for."""

    def __init__(self, queue, outsider, key: str) -> None:
        self.queue, self.outsider, self.key = queue, outsider, key
        self.api = Api(key=key)
        self.memory: Any = None

    def fill(self, text: str) -> str:
        text = text.replace("$queue_of_a", path_of(self.queue)).replace("$queue", path_of(self.queue))
        if "$schedule_of_b" in text:
            queue = make_queue(make_project(self.outsider.memberships.get().organization))
            schedule = create_schedule(queue, name="s", cron_expression="0 3 * * *", job_type="noop")
            text = text.replace("$schedule_of_b", str(schedule.pk))
        for name in ("$job_of_a", "$job1", "$job"):
            if name in text:
                text = text.replace(name, str(self.memory or make_job(self.queue).pk))
        return text.replace("$org_of_a", str(self.queue.project.organization_id))


@pytest.fixture
def world(queue, outsider, project):
    return World(queue, outsider, make_key(project))


def _params():
    return [pytest.param(case, id=case["id"]) for case in CASES]


@pytest.mark.parametrize("case", _params())
def test_case(case, world):
    expect = case["expect"]
    if "function" in case["request"]:
        _check_delays(case["request"], expect)
        return
    if case["request"]["method"] == "WS":
        for way in case["request"]["for_each"]:
            assert asyncio.run(_first_answer_of_socket(way, world)) == "websocket.close", way
        return
    if case["id"] in SETUPS:
        SETUPS[case["id"]](world)

    is_of_page = case["request"].get("resource") == PAGE_ACTION
    answer = _cancel_on_page(world) if is_of_page else _send(case, world)

    assert answer.status_code in expect["status"], answer.content[:500]
    assert answer.status_code != 500
    if answer.status_code == 400 and "error_field" in expect:
        named = {detail["field"] for detail in answer.json()["details"]}
        if expect["error_field"] == "retry_policy":
            assert named <= {"base_delay_ms", "jitter"}
        else:
            # In a request of many jobs the field is named with its place: jobs[0].depends_on
            wanted = FIELDS.get(expect["error_field"], expect["error_field"])
            plain = {field.rpartition("].")[2] for field in named}
            assert any(field == wanted or field.startswith(f"{wanted}.") for field in plain), plain
    if case["id"] in CHECKS:
        CHECKS[case["id"]](world, answer)


def _cancel_on_page(world: World) -> Any:
    """Press "Cancel" on a job's page, signed in, but without the token that only our own pages have."""
    job = make_job(world.queue)
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_member(world.queue.project.organization, Role.OWNER))
    path = path_of(world.queue).rpartition("/")[0]
    answer = client.post(f"/p/{path}/jobs/{job.pk}/cancel")
    assert status_of(job) == "queued"
    return answer


async def _first_answer_of_socket(way: str, world: World) -> str:
    """How the socket of live events answers a handshake; a real server's answers are in tests/live."""
    origin = way.partition("Origin: ")[2]
    key = [(b"x-api-key", world.key.encode()), (b"origin", origin.encode())] if origin else []
    scope = {"path": "/ws/events", "query_string": b"", "headers": [(b"host", b"localhost"), *key]}
    answers: list[str] = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        answers.append(message["type"])

    await socket.serve(Hub(), scope, receive, send)
    return answers[0]


def _send(case, world):
    request = case["request"]
    api, headers = _speaker(case, world)
    resource = world.fill(request["resource"])
    first, slash, rest = resource.partition("/")
    resource = RESOURCES.get(first, first) + slash + rest
    if resource == "metrics":
        return Client().get("/metrics")
    if resource == "api-keys":
        return Api(make_member(world.queue.project.organization, Role.ADMIN)).get(
            f"projects/{world.queue.project_id}/api-keys"
        )
    if resource.startswith("dead-letters/"):
        letter = DeadLetter.objects.get(job_id=resource.split("/")[1])
        return api.post(f"dead-letter/{letter.pk}/resolve", {"action": "requeued"})
    if request["method"] == "GET":
        return api.send(
            "get", f"{resource}?{request['query'].split(' (')[0]}" if "query" in request else resource, **headers
        )
    if "retry_policy" in request.get("body", {}):
        given = request["body"]["retry_policy"]
        return api.post("retry-policies", {"name": "p", **{POLICY_FIELDS.get(k, k): v for k, v in given.items()}})
    return api.send(request["method"].lower(), resource, _raw_body(request, world), **headers)


def _raw_body(request, world) -> Any:
    if "body_hex" in request:
        return bytes.fromhex(request["body_hex"])
    if "body_gen" in request:
        made = request["body_gen"]
        repeat, close = made["repeat"] * made["times"], made["close"] * made["times"]
        text = made["prefix"] + repeat + made["middle"] + close + made["suffix"]
    else:
        text = request.get("body_raw") or json.dumps(request.get("body", {}))
    for theirs, ours in FIELDS.items():
        text = text.replace(f'"{theirs}":', f'"{ours}":')
    if request["resource"] == "auth/refresh":
        return json.dumps({"refresh": world.memory})
    return world.fill(text)


def _speaker(case, world):
    headers = {name.replace("-", "_"): value for name, value in case["request"].get("headers", {}).items()}
    if case["kind"] == "auth":
        tokens = issue(world.outsider)
        _, body, _ = tokens.access.split(".")
        unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
        said = {
            "token-alg-none": f"Bearer {unsigned}.{body}.",
            "token-refresh-used-as-access": f"Bearer {tokens.refresh}",
            "apikey-revoked": f"Api-Key {world.key}",
        }
        headers.pop("Authorization", None)
        return Api(Authorization=said.get(case["id"], "")), headers
    return (Api(world.outsider) if case["request"].get("as") == "tenant B" else world.api), headers


def _check_delays(request, expect) -> None:
    policy = request["policy"]
    rule = RetryRule(
        policy["kind"],
        base_delay_ms=policy["base_delay"] * 1000,
        multiplier=policy.get("factor", 1),
        max_delay_ms=policy["max_delay"] * 1000,
        jitter=policy["jitter"],
    )
    if "values" in expect:
        assert [delay_s(rule, attempt) for attempt in request["attempts"]] == expect["values"]
    else:
        low, high = expect["range"]
        delays = {delay_s(rule, request["attempts"][0]) for _ in range(request["samples"])}
        assert all(low <= delay <= high for delay in delays)
        assert len(delays) >= 100


# -- what happened before -------------------------------------------------------------------------------------
def _submitted(key: str, payload: Any, **more: Any):
    def setup(world: World) -> None:
        body = {"queue": path_of(world.queue), "job_type": "test.echo", "payload": payload, **more}
        world.memory = world.api.post("jobs", body, Idempotency_Key=key).json().get("id")

    return setup


def _rotated(world: World) -> None:
    world.memory = issue(world.outsider).refresh
    Api().post("auth/refresh", {"refresh": world.memory})


def _changed_password(world: World) -> None:
    user = register_user(email="a@example.com", password="one good password")
    world.memory = issue(user).refresh
    passwords = {"old_password": "one good password", "new_password": "another good one"}
    assert Api(user).post("auth/password", passwords).status_code == 200


def _revoked(world: World) -> None:
    key = ApiKey.objects.get(key_hash=hash_key(world.key))
    admin = Api(make_member(world.queue.project.organization, Role.ADMIN))
    assert admin.delete(f"projects/{key.project_id}/api-keys/{key.pk}").status_code == 204


def _finished(world: World) -> None:
    world.memory = make_job(world.queue).pk
    settle([Ending.of(claim_one(world.queue), Succeeded(), str(uuid7()))])


def _thirty_at_once(world: World) -> None:
    jobs = [{"queue": path_of(world.queue), "job_type": "noop"}] * 30
    assert world.api.post("jobs/bulk", {"jobs": jobs}).status_code == 201


def _requeued_once(world: World) -> None:
    world.memory = make_job(world.queue, max_attempts=1).pk
    settle([Ending.of(claim_one(world.queue), Failed("x"), str(uuid7()))])
    letter = DeadLetter.objects.get()
    assert world.api.post(f"dead-letter/{letter.pk}/resolve", {"action": "requeued"}).status_code == 200


SETUPS = {
    "idempotency-replay": _submitted("k1", {"a": 1, "b": 2}),
    "idempotency-other-body": _submitted("k3", {"a": 1}),
    "idempotency-refused-request-keeps-key-free": _submitted("k5", {}, max_attempts=0),
    "token-rotated-refresh-reused": _rotated,
    "token-after-password-change": _changed_password,
    "apikey-revoked": _revoked,
    "list-ties": _thirty_at_once,
    "state-cancel-finished": _finished,
    "graph-parent-already-done": _finished,
    "state-requeue-twice": _requeued_once,
    "name-unicode-twins": lambda world: world.api.post("queues", {"name": "caf\u00e9"}),
    "name-duplicate": lambda world: world.api.post("queues", {"name": "q1"}),
}


# -- what must hold besides -----------------------------------------------------------------------------------
def _is_exact(world: World, answer) -> None:
    assert b"12345678901234567890123" in world.api.get(f"jobs/{answer.json()['id']}").content


def _is_first(world: World, answer) -> None:
    assert answer.json()["id"] == world.memory
    assert Job.objects.count() == 1


def _is_alone(world: World, answer) -> None:
    assert Job.objects.count() == 1


def _runs_once(world: World, answer) -> None:
    assert len(claim_from(world.queue, 5)) == 1


def _looks_unknown(world: World, answer) -> None:
    assert answer.content == Api(world.outsider).get(f"jobs/{uuid7()}").content


def _lists_all_once(world: World, answer) -> None:
    seen = [item["id"] for item in all_items(world.api, "jobs", 7)]
    assert len(seen) == len(set(seen)) == 30


def _shows_only_prefixes(world: World, answer) -> None:
    assert world.key.encode() not in answer.content
    assert answer.json()["items"][0]["prefix"] == world.key[:14]
    assert world.key not in str(list(ApiKey.objects.values()))


def _starts_at_once(world: World, answer) -> None:
    assert answer.json()["status"] == "queued"


def _ends_at_once(world: World, answer) -> None:
    fold_batches()
    assert world.api.get(f"batches/{answer.json()['id']}").json()["status"] == "completed"
    fold_batches()
    assert Job.objects.count() == 0  # it has no callback


def _is_still_completed(world: World, answer) -> None:
    job = Job.objects.get()
    assert (job.status, job.cancel_requested_at) == ("completed", None)


CHECKS = {
    "json-integer-23-digits": _is_exact,
    "idempotency-replay": _is_first,
    "idempotency-other-body": _is_alone,
    "time-past-runs-now": _runs_once,
    "apikey-shown-once": _shows_only_prefixes,
    "graph-parent-already-done": _starts_at_once,
    "batch-empty": _ends_at_once,
    "tenant-read-job": _looks_unknown,
    "list-ties": _lists_all_once,
    "state-cancel-finished": _is_still_completed,
    "state-requeue-twice": _runs_once,
}
