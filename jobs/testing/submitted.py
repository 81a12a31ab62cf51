"""What the code under test submitted."""

from __future__ import annotations

from typing import Any

from jobs.models import Job
from queues.models import Queue
from scheduler_project.lib import sealed_json

_PART = "payload__contains"


def assert_submitted(
    job_type: str, *, queue: Queue | None = None, count: int | None = None, **lookups: Any
) -> list[Job]:
    """Fail unless jobs of this type were submitted; those that fit, the oldest first, payloads in the clear.

    Args:
        count: exactly so many; None: at least one.
        lookups: filters of Django's on the job, such as ``priority=5`` or ``payload__user__id=3``. Two are compared
            with the payload in the clear, secrets included: ``payload=`` all of it, ``payload__contains=`` the part
            that must be in it.
    """
    found = _fitting(job_type, queue, lookups)
    if (count is None and not found) or (count is not None and len(found) != count):
        wanted = "one" if count is None else str(count)
        raise AssertionError(
            f"{wanted} {job_type} wanted{_shown(lookups)}, {len(found)} found; {_all(job_type, queue)}"
        )
    return found


def assert_not_submitted(job_type: str, *, queue: Queue | None = None, **lookups: Any) -> None:
    """Fail if a job of this type, with these properties, was submitted."""
    assert_submitted(job_type, queue=queue, count=0, **lookups)


def _fitting(job_type: str, queue: Queue | None, lookups: dict[str, Any]) -> list[Job]:
    in_python = {name: lookups[name] for name in ("payload", _PART) if name in lookups}
    jobs = Job.objects.filter(job_type=job_type, **{n: v for n, v in lookups.items() if n not in in_python})
    if queue is not None:
        jobs = jobs.filter(queue=queue)
    found = list(jobs.order_by("id"))
    for job in found:
        job.payload = sealed_json.opened(job.payload).value
    if "payload" in in_python:
        found = [job for job in found if job.payload == in_python["payload"]]
    return [job for job in found if _PART not in in_python or _contains(job.payload, in_python[_PART])]


def _contains(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(n in whole and _contains(whole[n], inner) for n, inner in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(_contains(w, inner) for w in whole) for inner in part)
    return bool(whole == part)


def _shown(lookups: dict[str, Any]) -> str:
    return f" with {', '.join(f'{name}={value!r}' for name, value in lookups.items())}" if lookups else ""


def _all(job_type: str, queue: Queue | None) -> str:
    jobs = Job.objects.all() if queue is None else Job.objects.filter(queue=queue)
    same = [sealed_json.masked(payload) for payload in jobs.filter(job_type=job_type).values_list("payload", flat=True)]
    if same:
        return f"of this type there are the payloads {same[:5]!r}"
    others = sorted(set(jobs.values_list("job_type", flat=True)))
    return f"submitted were {', '.join(others[:20]) or 'no jobs'}"
