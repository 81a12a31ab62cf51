"""Workers over HTTP, in any language: claim, heartbeat, finish. The protocol is in docs/remote-workers.md."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api import remote_serializers as shapes
from jobs.lifecycle.claim import KnownTypes
from jobs.models import Worker
from jobs.services.remote import presence
from jobs.services.remote.claiming import Handed, Wish, ask_again, find_queues, try_claim
from jobs.services.remote.endings import Receipt, Report, finish
from jobs.services.remote.leases import Line, Proof, Sign, keep
from orgs.access import runner_project_id
from orgs.authentication import actor_of
from scheduler_project.lib.rest.describe import describe
from scheduler_project.lib.rest.parking import look_until
from scheduler_project.lib.rest.views import ApiView, read_body

ANY_TYPE = ("*",)
#: Beats are asked for three times a lease, at least so often and at most so often.
LONGEST_BEAT_MS, SHORTEST_BEAT_MS, BEATS_PER_LEASE = 10_000, 300, 3
#: A worker that waits for jobs is noted as alive this often.
NOTE_ALIVE_S = 5.0
#: What a worker is told to wait when all places to wait are taken.
CROWDED_MS = 1_000
_STATUSES = {
    "running": Worker.Status.ACTIVE,
    "draining": Worker.Status.DRAINING,
    "stopped": Worker.Status.STOPPED,
}


class WorkerView(ApiView):
    """Not limited: a worker that is kept from heartbeats or from reporting would do its work twice."""

    throttle_classes = ()


class ClaimView(WorkerView):
    @describe({200: shapes.ClaimOutput}, body=shapes.ClaimInput)
    def post(self, request: Request) -> Response:
        project_id = runner_project_id(actor_of(request))
        fields = read_body(request, shapes.ClaimInput)
        wish = _wish(project_id, fields)
        if presence.must_drain(wish.worker_row_id):
            return _claimed(wish, [], must_drain=True)
        handed = ask_again(wish)
        if handed is not None:
            return _claimed(wish, handed)
        look = _Look(wish)
        found, had_place = look_until(look, fields["wait_ms"] / 1000)
        return _claimed(wish, found, must_drain=look.must_drain, retry_after_ms=0 if had_place else CROWDED_MS)


class _Look:
    """One look for jobs; notes now and then that the waiting worker lives."""

    def __init__(self, wish: Wish) -> None:
        self._wish, self._noted_at = wish, time.monotonic()
        self.must_drain = False

    def __call__(self) -> list[Handed]:
        if time.monotonic() - self._noted_at > NOTE_ALIVE_S:
            self._noted_at = time.monotonic()
            self.must_drain = presence.note_alive(self._wish.worker_row_id)
        return [] if self.must_drain else try_claim(self._wish)


class HeartbeatView(WorkerView):
    @describe({200: shapes.HeartbeatOutput}, body=shapes.HeartbeatInput)
    def post(self, request: Request) -> Response:
        project_id = runner_project_id(actor_of(request))
        fields = read_body(request, shapes.HeartbeatInput)
        answers = keep(project_id, [_sign(lease) for lease in fields["leases"]])
        stats = fields.get("stats") or {"cpu_percent": 0.0, "memory_mb": 0.0}
        row_id = presence.worker_row_id(project_id, fields["worker_id"])
        vitals = presence.Vitals(active=len(answers), **stats)
        must_drain = presence.beat(row_id, _STATUSES[fields["state"]], vitals)
        leases = [
            {"id": lease["id"], "status": answer.status, "lease_expires_in_ms": answer.lease_s * 1000}
            for lease, answer in zip(fields["leases"], answers, strict=True)
        ]
        shown = {
            "directive": _directive(must_drain),
            "heartbeat_every_ms": _beat_ms(answer.lease_s for answer in answers if answer.lease_s),
            "leases": leases,
        }
        return Response(shapes.HeartbeatOutput(shown).data)


class FinishView(WorkerView):
    @describe({200: shapes.FinishOutput}, body=shapes.FinishInput)
    def post(self, request: Request) -> Response:
        project_id = runner_project_id(actor_of(request))
        results = read_body(request, shapes.FinishInput)["results"]
        receipts = finish(project_id, [_report(result) for result in results])
        shown = [_receipt(result, receipt) for result, receipt in zip(results, receipts, strict=True)]
        return Response(shapes.FinishOutput({"results": shown}).data)


class DrainView(ApiView):
    @describe({202: shapes.DrainOutput}, body=shapes.DrainInput)
    def post(self, request: Request, worker_id: UUID) -> Response:
        read_body(request, shapes.DrainInput)
        presence.request_drain(actor_of(request), worker_id)
        return Response(shapes.DrainOutput({"id": worker_id, "directive": "drain"}).data, status=202)


def _wish(project_id: UUID, fields: Mapping[str, Any]) -> Wish:
    """Finds the queues and introduces the worker."""
    queues = None if fields["queues"] is None else find_queues(project_id, fields["queues"])
    info = presence.Info(**fields.get("info", {}))
    row_id = presence.meet(project_id, fields["worker_id"], info, presence.paths_of(project_id, queues))
    names = fields["types"] or ANY_TYPE
    known = KnownTypes.of([n for n in names if "*" not in n], [n for n in names if "*" in n])
    queue_ids = None if queues is None else tuple(str(queue.pk) for queue in queues)
    return Wish(project_id, row_id, fields["claim_id"], queue_ids, known, fields["max_jobs"])


def _claimed(wish: Wish, handed: list[Handed], *, must_drain: bool = False, retry_after_ms: int = 0) -> Response:
    shown = {
        "worker_id": wish.worker_row_id,
        "directive": _directive(must_drain),
        "heartbeat_every_ms": _beat_ms(job.lease_s for job in handed),
        "retry_after_ms": retry_after_ms,
        "jobs": handed,
    }
    return Response(shapes.ClaimOutput(shown).data)


def _sign(lease: Mapping[str, Any]) -> Sign:
    lines = [Line(line["level"], line["message"], line["ago_ms"]) for line in lease["logs"]]
    return Sign(_proof(lease), lease["progress_percent"], lease["progress_note"], lines)


def _report(result: Mapping[str, Any]) -> Report:
    error = result.get("error", {})
    text = ": ".join(part for part in (error.get("type"), error.get("message")) if part)
    after_s = result["retry_after_s"] if result["outcome"] == "snoozed" else error.get("retry_after_s")
    return Report(
        _proof(result),
        result["outcome"],
        result=result["result"],
        error=text,
        stack=error.get("stack"),
        retry_after_s=after_s,
        is_final=not error.get("retryable", True),
        ran_ms=result["ran_ms"],
    )


def _receipt(result: Mapping[str, Any], receipt: Receipt) -> dict[str, Any]:
    status, message = receipt.status, receipt.message
    return {"id": result["id"], "status": status, "job_status": receipt.job_status, "message": message}


def _proof(said: Mapping[str, Any]) -> Proof:
    return Proof(said["id"], said["lease_token"])


def _directive(must_drain: bool) -> str:
    return "drain" if must_drain else "run"


def _beat_ms(leases_s: Iterable[int]) -> int:
    shortest_ms = min((lease_s * 1000 // BEATS_PER_LEASE for lease_s in leases_s), default=LONGEST_BEAT_MS)
    return max(SHORTEST_BEAT_MS, min(LONGEST_BEAT_MS, shortest_ms))
