"""How jobs are reached: ``Job.objects`` reads, ``Job.claims`` writes the life cycle (used only in jobs/lifecycle)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import models
from django.db.models import ExpressionWrapper, F
from django.db.models.functions import Now

from jobs import sql
from jobs.states import IN_FLIGHT, TERMINAL
from queues.backoff import DEFAULT_RULE, JITTER, RetryRule
from scheduler_project.lib.sql import Row, read, run, run_prepared, run_together
from scheduler_project.lib.statements import Call, plain_array, text_array

if TYPE_CHECKING:
    from jobs.models import Job, LeaderTerm, Worker  # noqa: F401 - named in the managers' type parameters


#: So many queued jobs of a queue are read and sorted for a list of them.
FEW_QUEUED = 5_000


class JobQuerySet(models.QuerySet["Job"]):
    """Filters that can be chained."""

    def in_projects(self, project_ids: Iterable[UUID]) -> JobQuerySet:
        """Only the jobs of these projects: the border no request sees across."""
        return self.filter(project_id__in=list(project_ids))

    def in_flight(self) -> JobQuerySet:
        """Claimed or running: held by a worker."""
        return self.filter(status__in=sorted(IN_FLIGHT))

    def due(self) -> JobQuerySet:
        """Scheduled jobs whose time has come by the database's clock and which wait for no other job."""
        return self.filter(status="scheduled", is_blocked=False, run_at__lte=Now())

    def ended(self) -> JobQuerySet:
        """In a state that no worker will change."""
        return self.filter(status__in=sorted(TERMINAL))

    def retry_rules(self, ids: Iterable[str]) -> dict[str, RetryRule]:
        """The rule of each job: its own policy, else its queue's, else the default; its own number of attempts wins."""
        policy_fields = ("strategy", "base_delay_ms", "multiplier", "max_delay_ms", "max_attempts", "jitter")
        own = [f"retry_policy__{field}" for field in policy_fields]
        of_queue = [f"queue__default_retry_policy__{field}" for field in policy_fields]
        left = ExpressionWrapper(F("deadline") - Now(), output_field=models.DurationField())
        rows = self.filter(id__in=list(ids)).values_list("id", "max_attempts_override", left, *own, *of_queue)
        return {str(row[0]): _rule(row[1], row[2], row[3:9], row[9:15]) for row in rows}

    def page_of(self, **params: object) -> list[UUID]:
        """Ids of the newest jobs of some queues."""
        if params["status"] == "queued":
            return [UUID(row[0]) for row in run(sql.PAGE_OF_QUEUED, {**params, "few": FEW_QUEUED})]
        return [UUID(row[0]) for row in run(sql.PAGE_OF_JOBS, params)]

    def queues_now(self, project_ids: Sequence[UUID] | None) -> list[Row]:
        """How the queues of these projects (None: of all) were when the leader counted them last."""
        return run(sql.QUEUES_NOW, {"project_ids": None if project_ids is None else plain_array(project_ids)})

    def history(self, **params: object) -> list[Row]:
        """What a queue or a whole project did in each bar of a range; the copy of the database may be asked."""
        return read(sql.HISTORY, params)

    def statuses(self, project_id: UUID, ids: Iterable[str]) -> dict[str, str]:
        """The status of each job of a project that is still kept, by the text of its id."""
        rows = run(sql.STATUSES, {"project_id": project_id, "ids": plain_array(list(ids))})
        return dict(rows)

    def page_of_type(self, **params: object) -> list[tuple[UUID, bool]]:
        """Ids of the newest jobs of one type, and where to look on."""
        return [(UUID(id_), is_match) for id_, is_match in run(sql.PAGE_OF_TYPE, params)]

    def front_of_queues(self) -> list[tuple[UUID, datetime, bool]]:
        """Of each queue with claimable jobs the first one: the queue, when it was due, whether it has a circuit."""
        return [(queue_id, run_at, has_circuit) for queue_id, run_at, has_circuit in run(sql.FRONT_OF_QUEUES, {})]

    def ahead_of(self, *, queue_id: UUID, priority: int, run_at: datetime, id_: UUID, cap: int) -> tuple[int, bool]:
        """How many queued jobs would be claimed before this one, and whether it is "or more": ``cap`` are looked at."""
        place = {"queue_id": queue_id, "priority": priority, "run_at": run_at, "id": id_, "cap": cap}
        count, is_capped = run(sql.JOBS_AHEAD, place)[0]
        return count, is_capped

    def for_operation(self, **params: object) -> list[tuple[UUID, bool]]:
        """The next jobs an operation looks at, and whether they are of its type."""
        return [(UUID(id_), is_match) for id_, is_match in run(sql.JOBS_OF_OPERATION, params)]

    def same_work(self, *, ids: Sequence[str], job_types: Sequence[str], payloads: Sequence[str]) -> list[UUID]:
        """Those of the jobs that have this type and payload."""
        arrays = {"ids": plain_array(ids), "job_types": text_array(job_types), "payloads": text_array(payloads)}
        return [UUID(row[0]) for row in run(sql.SAME_WORK, arrays)]

    def descendants(self, *, id_: str) -> list[str]:
        """The jobs that wait for a job, directly or through others."""
        return [row[0] for row in run(sql.DESCENDANTS, {"id": id_})]

    def workflow_of(self, *, id_: str, most: int) -> list[tuple[str, str, str, list[str]]]:
        """The jobs that hang together with a job, itself among them, no more than ``most``: the id, type and status
        of each, and the ids of those it waits for.
        """
        rows = run(sql.WORKFLOW_OF, {"id": id_, "most": most})
        return [(row[0], row[1], row[2], list(row[3])) for row in rows]

    def without_payload(self) -> JobQuerySet:
        """For lists: payloads and results may be large and are never shown in one."""
        return self.defer("payload", "result")


def _rule(override: int | None, left: timedelta | None, own: Row, of_queue: Row) -> RetryRule:
    chosen = next((policy for policy in (own, of_queue) if policy[0] is not None), None)
    rule = DEFAULT_RULE
    if chosen is not None:
        *numbers, is_spread = chosen
        rule = replace(RetryRule(*numbers), jitter=JITTER if is_spread else 0.0)
    if left is not None:
        rule = replace(rule, left_s=left.total_seconds())
    return rule if override is None else replace(rule, max_attempts=override)


class ClaimManager(models.Manager["Job"]):
    """The raw writes of the life cycle. Calls that a worker sends together are returned, the others are run."""

    # -- in a worker's round trip ------------------------------------------------------------------------------
    def open_queues(self, **params: object) -> Call:
        """Locks for the claim that follows."""
        return Call(sql.OPEN_QUEUES, params)

    def claim(self, **params: object) -> Call:
        """queued -> claimed or running."""
        return Call(sql.CLAIM, params)

    def open_gate(self, **params: object) -> Call:
        """What a gated queue lets through."""
        return Call(sql.OPEN_GATE, params)

    def claim_gated(self, **params: object) -> Call:
        """queued -> claimed or running, from one queue with a rate or concurrency keys."""
        return Call(sql.CLAIM_GATED, params)

    def spend_rate(self, **params: object) -> Call:
        """What is left of a gated queue's rate."""
        return Call(sql.SPEND_RATE, params)

    def know_circuits(self, **params: object) -> Call:
        """Breakers for the calls that are noted next."""
        return Call(sql.KNOW_CIRCUITS, params)

    def note_calls(self, **params: object) -> Call:
        """What ended attempts tell about their circuits."""
        return Call(sql.NOTE_CALLS, params)

    def start(self, **params: object) -> Call:
        """claimed -> running."""
        return Call(sql.START, params)

    def settle(self, *, may_be_told: bool, **params: object) -> Call:
        """The end of attempts; ``may_be_told`` if a job may end in a way that somebody subscribed to."""
        return Call(sql.SETTLE if may_be_told else sql.SETTLE_WELL, params)

    def release(self) -> Call:
        """Let go the jobs that waited for those just settled."""
        return Call(sql.RELEASE, {})

    def end_soon(self, **params: object) -> Call:
        """A limit for the idle time of the transaction."""
        return Call(sql.END_SOON, params)

    def extend(self, **params: object) -> Call:
        """More time for leases."""
        return Call(sql.EXTEND_LEASES, params)

    def hold(self, **params: object) -> Call:
        """Locks for the several statements that follow."""
        return Call(sql.HOLD, params)

    def log_lines(self, **params: object) -> Call:
        """What handlers logged."""
        return Call(sql.LOG_LINES, params)

    def progress(self, **params: object) -> Call:
        """How far handlers are."""
        return Call(sql.PROGRESS, params)

    # -- on their own ------------------------------------------------------------------------------------------
    def let_through(self, *, cool_down_s: float, look_at: int) -> list[Row]:
        """Choose jobs that may run although their circuit is not trusted."""
        return run(sql.LET_THROUGH, {"cool_down_s": cool_down_s, "look_at": look_at})

    def submit(self, **params: object) -> list[Row]:
        """(new) -> queued or scheduled."""
        return run(sql.SUBMIT, params)

    def submit_at_once(self, **params: object) -> int:
        """(new) -> queued; when."""
        at: int = run(sql.SUBMIT_AT_ONCE, params)[0][0]
        return at

    def submit_plain(self, **params: object) -> int:
        """(new) -> queued, of one job; when."""
        at: int = run(sql.SUBMIT_PLAIN, params)[0][0]
        return at

    def submit_unseen(self, *, idempotency_key: str | None, **params: object) -> tuple[UUID, int] | None:
        """(new) -> queued, of one job, into a queue that the statement finds; which one, and when."""
        statement = sql.SUBMIT_UNSEEN_UNKEYED if idempotency_key is None else sql.SUBMIT_UNSEEN
        rows = run(statement, {**params, "idempotency_key": idempotency_key})
        return (rows[0][0], rows[0][1]) if rows else None

    def ready_queues(self, **params: object) -> list[Row]:
        """Queues with work."""
        return run_prepared([Call(sql.READY_QUEUES, params)])[0]

    def claimed_unknown(self, **params: object) -> list[Row]:
        """Leases whose claim was never answered."""
        return run(sql.CLAIMED_UNKNOWN, params)

    def promote(self, *, limit: int, skip: Sequence[str], only: Sequence[str] | None = None) -> list[Row]:
        """scheduled -> queued."""
        return run(sql.PROMOTE, {"limit": limit, "skip": list(skip), "only": only})

    def due_next(self, just_s: float) -> list[Row]:
        """Seconds to the next due job, of those that were not due longer than ``just_s`` ago."""
        return run(sql.DUE_NEXT, {"just_s": just_s})

    def expired(self, *, limit: int, skip: Sequence[str], only: Sequence[str] | None = None) -> list[Row]:
        """Attempts whose lease ran out, locked."""
        return run(sql.EXPIRED, {"limit": limit, "skip": list(skip), "only": only})

    def cancel(self, *, ids: Sequence[str], reason: str) -> tuple[list[Row], list[Row]]:
        """queued, scheduled -> cancelled; in flight: asked. And the queues of jobs that were let go by it."""
        calls = [Call(sql.CANCEL, {"ids": list(ids), "reason": reason}), Call(sql.RELEASE_OF, {"ids": list(ids)})]
        cancelled, released = run_together(calls)
        return cancelled, released

    def too_late(self, *, limit: int, skip: Sequence[str], only: Sequence[str] | None = None) -> list[Row]:
        """Waiting jobs behind a deadline of theirs, locked."""
        return run(sql.TOO_LATE, {"limit": limit, "skip": list(skip), "only": only})

    def release_of(self, *, ids: Sequence[str]) -> list[Row]:
        """Let go the jobs that wait for these, if they have ended."""
        return run(sql.RELEASE_OF, {"ids": list(ids)})

    def requeue(self, *, ids: Sequence[str], blocked: Sequence[str] = ()) -> list[Row]:
        """ended -> queued, or scheduled for those that wait for others of them."""
        return run(sql.REQUEUE, {"ids": list(ids), "blocked": list(blocked)})


class TermManager(models.Manager["LeaderTerm"]):
    """The raw writes of leadership."""

    def lead(self, *, lock_id: int, hostname: str, pid: int) -> int | None:
        """Take the lock and open a term."""
        rows = run(sql.LEAD, {"lock_id": lock_id, "hostname": hostname, "pid": pid})
        return rows[0][0] if rows else None

    def renew(self, *, term: int) -> bool:
        """Show that the leader is at work."""
        return bool(run(sql.RENEW_TERM, {"term": term}))

    def depose(self, *, lock_id: int, idle_s: float) -> list[int]:
        """End a frozen leader's session."""
        return [row[0] for row in run(sql.DEPOSE, {"lock_id": lock_id, "idle_s": idle_s})]


class WorkerManager(models.Manager["Worker"]):
    """The raw writes about workers."""

    def retire(self, *, silent_s: float) -> list[str]:
        """Workers that fell silent are lost."""
        return [row[0] for row in run(sql.RETIRE_WORKERS, {"silent_s": silent_s})]

    def prune_heartbeats(self, *, keep_s: float, limit: int) -> None:
        """Forget old heartbeats."""
        run(sql.PRUNE_HEARTBEATS, {"keep_s": keep_s, "limit": limit})
