"""The client."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import httpx

from punctual_client.errors import WaitTimeout
from punctual_client.jobs import BulkItem, Job, NewJob
from punctual_client.transport import Transport

MAX_BULK = 1_000
#: The longest that one request waits for a job on the server.
LOOK_S = 20.0
_PAGE = 200


class Client:
    """Speaks for the project of an API key. Safe for several threads; close it, or use it as a context manager.

    Args:
        url: the server, such as ``https://punctual.example``.
        api_key: a key of the scope submit or manage; read will do for looking.
        timeout_s: for connecting, sending and reading, each.
        retries: how often a request is sent again after no answer or after 429, 502, 503, 504.
        http: connections of your own, for proxies and certificates; they stay open.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str,
        timeout_s: float = 10.0,
        retries: int = 5,
        http: httpx.Client | None = None,
    ) -> None:
        self._transport = Transport(url, api_key, timeout_s=timeout_s, retries=retries, http=http)

    def __repr__(self) -> str:
        return f"Client({self._transport!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def submit(
        self, job_type: str, payload: Any = None, *, queue: str, idempotency_key: str | None = None, **options: Any
    ) -> Job:
        """Submit one job.

        Without a key of yours it gets a random one, so that a request that is sent again makes no second job. A key
        of yours that was used before brings the first job back, with ``is_replay``.

        Args:
            queue: a name, a path or an id.
            options: further fields of the API, such as priority, run_at, delay_s, max_attempts, depends_on.

        Raises:
            ValidationFailed: ``details`` names the field.
            Conflict: the key stands for a job of another type or payload.
        """
        new = NewJob(job_type, {} if payload is None else payload, queue, idempotency_key, options)
        status, raw = self._transport.call("POST", "jobs", body=_body(new))
        return Job.of(raw, is_replay=status == 200)

    def submit_many(self, jobs: Sequence[NewJob], *, queue: str | None = None, atomic: bool = True) -> list[BulkItem]:
        """Submit many jobs, up to 1,000 in a request; what became of each, in their order.

        Args:
            queue: for jobs that name none.
            atomic: all jobs of a request or none (then an error is raised); else each for itself.
        """
        found: list[BulkItem] = []
        for start in range(0, len(jobs), MAX_BULK):
            part = [_body(job, queue) for job in jobs[start : start + MAX_BULK]]
            _, raw = self._transport.call("POST", "jobs/bulk", body={"jobs": part, "atomic": atomic})
            found += [BulkItem.of(start + index, item) for index, item in enumerate(raw["results"])]
        return found

    def get(self, job_id: str) -> Job:
        """One job with payload and result. NotFound if there is none for this key."""
        return Job.of(self._transport.call("GET", f"jobs/{job_id}")[1])

    def wait(self, job_id: str, *, timeout_s: float = 300.0) -> Job:
        """The job once it has ended, however it did. WaitTimeout if it has not by then."""
        deadline = time.monotonic() + timeout_s
        while True:
            look_s = max(0.0, min(LOOK_S, deadline - time.monotonic()))
            began = time.monotonic()
            query = {"wait_ms": round(look_s * 1000)}
            job = Job.of(self._transport.call("GET", f"jobs/{job_id}", query=query, wait_s=look_s)[1])
            if job.has_ended:
                return job
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise WaitTimeout(f"Job {job_id} is still {job.status} after {timeout_s} s.")
            if time.monotonic() - began < look_s / 2:  # the server had no place to wait
                time.sleep(min(1.0, left_s))

    def list(self, *, limit: int | None = None, **filters: Any) -> Iterator[Job]:
        """Jobs, newest first, read page by page as they are asked for; pages do not shift while jobs arrive.

        Args:
            limit: at most so many jobs, None for all.
            filters: of the API: queue_id, status, job_type, created_from, created_to.
        """
        left, cursor = limit, None
        while left is None or left > 0:
            size = _PAGE if left is None else min(_PAGE, left)
            _, page = self._transport.call("GET", "jobs", query={**filters, "limit": size, "cursor": cursor})
            for raw in page["items"]:
                yield Job.of(raw)
            cursor = page["next_cursor"]
            if cursor is None:
                return
            left = None if left is None else left - len(page["items"])

    def cancel(self, job_id: str, *, reason: str | None = None) -> str:
        """Cancel a job; ``cancelled``, or the status of a running one, whose worker was asked. Conflict if it ended."""
        body = {} if reason is None else {"reason": reason}
        return str(self._transport.call("POST", f"jobs/{job_id}/cancel", body=body, is_safe=False)[1]["status"])

    def retry(self, job_id: str) -> str:
        """Queue an ended job again with fresh attempts; its status. Conflict if it has not ended."""
        return str(self._transport.call("POST", f"jobs/{job_id}/retry", body={}, is_safe=False)[1]["status"])


def _body(job: NewJob, queue: str | None = None) -> dict[str, Any]:
    where = job.queue or queue
    if where is None:
        raise ValueError("a job needs a queue")
    named = {"queue_id": where} if _is_id(where) else {"queue": where}
    key = job.idempotency_key or f"auto-{uuid.uuid4()}"
    options = {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in job.options.items()}
    return {**options, **named, "job_type": job.job_type, "payload": job.payload, "idempotency_key": key}


def _is_id(text: str) -> bool:
    try:
        return len(text) == 36 and bool(uuid.UUID(text))
    except ValueError:
        return False
