"""Expected failures: one kind for each error code of the specification. Doors translate them by one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field of the input, and what is allowed."""

    field: str
    message: str


class DomainError(Exception):
    """A request that can not be granted. ``message`` is for people, ``details`` name the fields."""

    code = "bad_request"
    #: The HTTP status, where it is not the usual one of the code.
    status: int | None = None

    def __init__(self, message: str, details: Sequence[FieldError] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.details = list(details)


class ValidationFailed(DomainError):
    """Input that breaks a rule; always names at least one field."""

    code = "validation_error"

    @classmethod
    def of(cls, field: str, message: str) -> ValidationFailed:
        """The common case: one field is wrong."""
        return cls(f"{field}: {message}", [FieldError(field, message)])


class NotFound(DomainError):
    """It does not exist, or not for this caller."""

    code = "not_found"


class Forbidden(DomainError):
    """The caller may see it, but not do this."""

    code = "forbidden"


class Conflict(DomainError):
    """The state it is in does not allow this."""

    code = "conflict"
