"""One exception for each error code of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Detail:
    """What is wrong with one field."""

    field: str
    message: str


class PunctualError(Exception):
    """Everything this package raises.

    Attributes:
        status: the HTTP status, None if there was no answer.
        code: the API's stable error code.
        details: what is wrong with which field.
        request_id: names the request in the server's logs.
    """

    code = "error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        details: Sequence[Detail] = (),
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.details = message, status, tuple(details)
        self.request_id, self.retry_after_s = request_id, retry_after_s

    def __str__(self) -> str:
        origin = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.code}: {self.message}{origin}"


class BadRequest(PunctualError):
    """The request is malformed."""

    code = "bad_request"


class ValidationFailed(BadRequest):
    """A field breaks a rule; ``details`` names it."""

    code = "validation_error"


class Unauthorized(PunctualError):
    """The key is unknown, expired or revoked."""

    code = "unauthorized"


class Forbidden(PunctualError):
    """The key may not do this."""

    code = "forbidden"


class NotFound(PunctualError):
    """It does not exist, or not for this key."""

    code = "not_found"


class Conflict(PunctualError):
    """The state it is in does not allow this, or the idempotency key stands for other work."""

    code = "conflict"


class TooManyRequests(PunctualError):
    """The limit is reached, and trying again did not help; ``retry_after_s`` says when it will."""

    code = "too_many_requests"


class ServerError(PunctualError):
    """A fault of the server, or it is overloaded."""

    code = "internal_error"


class Unreachable(PunctualError):
    """There was no answer. Not ``was_sent``: the server has certainly not got the request."""

    code = "unreachable"

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class WaitTimeout(PunctualError):
    """The job has not ended in time; it goes on."""

    code = "wait_timeout"


_BY_CODE: dict[str, type[PunctualError]] = {
    kind.code: kind
    for kind in (
        BadRequest, ValidationFailed, Unauthorized, Forbidden, NotFound, Conflict, TooManyRequests, ServerError,
    )
}  # fmt: skip
_BY_STATUS: dict[int, type[PunctualError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: TooManyRequests,
}


def error_of(
    status: int, body: Any, *, request_id: str | None = None, retry_after_s: float | None = None
) -> PunctualError:
    """The exception for an answer; one that is not the API's own (a proxy's page) goes by its status."""
    said: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
    by_status = _BY_STATUS.get(status, BadRequest if status < 500 else ServerError)
    kind = _BY_CODE.get(str(said.get("error")), by_status)
    return kind(
        str(said.get("message") or f"HTTP status {status}"),
        status=status,
        details=_details(said.get("details")),
        request_id=request_id,
        retry_after_s=retry_after_s,
    )


def _details(said: Any) -> list[Detail]:
    items = said if isinstance(said, list) else []
    return [Detail(str(d.get("field")), str(d.get("message"))) for d in items if isinstance(d, Mapping)]
