"""Circuit breakers: attempts tell how their target does; the leader lets single jobs through to look again.

closed -> open: half of the last calls, of five at least, went wrong. While it is open the claim passes its jobs by, and
no attempt is used. open -> half_open: after the cool-down the leader names one job that may run, so there is one probe
over all workers. It goes wrong: open again. It goes well: closed, but at first only 4 named jobs run, then 16, and so
on: a target that has just come back is not overrun.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from django.conf import settings
from django.db.models import ExpressionWrapper, F, FloatField, Min
from django.db.models.functions import Extract, Now

from jobs.decisions import Discarded, Failed, Succeeded
from jobs.hints import WORK, hint
from jobs.lease import Ending
from jobs.models import CircuitBreaker, Job
from scheduler_project.lib import logs
from scheduler_project.lib.ids import uuid7
from scheduler_project.lib.statements import Call, plain_array, text_array

log = logs.get(__name__)

#: Outcomes remembered, and how many there must be before a circuit may open.
REMEMBERED, LEAST = 10, 5
GROWTH, MOST = 4, 256
#: Those who probe are chosen from so many of the oldest jobs that wait.
LOOK_AT = 1_000


def note_calls(endings: Sequence[Ending]) -> list[Call]:
    """The statements that write what these attempts tell; none if no job has a circuit.

    A handler that failed counts against its target. One that said "do not retry" had an answer from it. Attempts that
    were interrupted, cancelled or put off tell nothing.
    """
    outcomes: defaultdict[tuple[str, str], str] = defaultdict(str)
    good: list[str] = []
    bad: list[str] = []
    for ending in endings:
        if ending.circuit is None or not isinstance(ending.verdict, Succeeded | Failed | Discarded):
            continue
        is_bad = isinstance(ending.verdict, Failed) and not ending.verdict.is_final
        outcomes[ending.project_id, ending.circuit] += "1" if is_bad else "0"
        (bad if is_bad else good).append(ending.job_id)
    if not outcomes:
        return []
    keys = sorted(outcomes)
    which = {"project_ids": plain_array([key[0] for key in keys]), "names": text_array([key[1] for key in keys])}
    return [
        Job.claims.know_circuits(ids=plain_array([uuid7() for _ in keys]), **which),
        Job.claims.note_calls(
            **which,
            outcomes=text_array([outcomes[key][-REMEMBERED:] for key in keys]),
            good_ids=plain_array(good),
            bad_ids=plain_array(bad),
            remembered=REMEMBERED,
            least=LEAST,
            growth=GROWTH,
            most=MOST,
        ),
    ]


def let_through() -> int:
    """Name the jobs that may run although their circuit is not trusted; how many breakers changed. The leader's."""
    rows = Job.claims.let_through(cool_down_s=settings.BREAKER_COOL_DOWN_SECS, look_at=LOOK_AT)
    for state, project_id, name, queue_ids in rows:
        log.info("circuit_tried", state=state, project_id=project_id, circuit=name)
        for queue_id in queue_ids or ():
            hint(WORK, queue_id)
    return len(rows)


def probe_in_s() -> float | None:
    """Seconds until the next open circuit is to be probed, negative if it is overdue; None if none is open."""
    age = ExpressionWrapper(Extract(Now() - F("opened_at"), "epoch"), output_field=FloatField())
    oldest = CircuitBreaker.objects.filter(state=CircuitBreaker.State.OPEN).annotate(left=-age).aggregate(s=Min("left"))
    left: float | None = oldest["s"]
    return None if left is None else settings.BREAKER_COOL_DOWN_SECS + left


def reset(breaker: CircuitBreaker) -> CircuitBreaker:
    """Close a circuit by hand: its jobs may be claimed at once, all that was known of it is forgotten."""
    CircuitBreaker.objects.filter(pk=breaker.pk, project_id=breaker.project_id).update(
        state=CircuitBreaker.State.CLOSED, recent="", opened_at=None, allowance=None, let_through=[], updated_at=Now()
    )
    breaker.refresh_from_db()
    waiting = Job.objects.filter(status="queued", project_id=breaker.project_id, circuit=breaker.name)
    for queue_id in waiting.order_by("id").values_list("queue_id", flat=True)[:1]:
        hint(WORK, str(queue_id))
    return breaker
