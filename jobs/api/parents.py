"""How a body says which jobs a job waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from uuid import UUID

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from jobs.lifecycle.graph import After
from jobs.new_job import MAX_PARENTS, Parent

OnFailure = Literal["cancel", "run", "wait"]
_CHOICES = ("cancel", "run", "wait")
MAX_REF_CHARS = 200


class Wanted(NamedTuple):
    """A job to wait for: by its id, or by its name in the same request."""

    job_id: UUID | None
    ref: str | None
    on_failure: OnFailure

    def as_parent(self) -> Parent:
        """For a job that exists. ValidationError if only a name was given."""
        if self.job_id is None:
            raise ValidationError("must be the id of a job")
        return Parent(self.job_id, self.on_failure)

    def as_after(self) -> After:
        """For a job of the same request."""
        return After(self.ref if self.ref is not None else str(self.job_id), self.on_failure)


class ParentField(serializers.Field[Any, Any, Any, Any]):
    """An id, a name in the same request, or an object with ``job_id`` or ``ref`` and ``on_failure``."""

    json_schema: Mapping[str, Any] = {
        "oneOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {
                    "job_id": {"type": "string", "format": "uuid"},
                    "ref": {"type": "string"},
                    "on_failure": {"type": "string", "enum": list(_CHOICES), "default": "cancel"},
                },
            },
        ]
    }

    def to_internal_value(self, data: Any) -> Wanted:
        if isinstance(data, str):
            return _named(data, data, "cancel")
        if not isinstance(data, Mapping):
            raise ValidationError("must be a job's id or an object with job_id and on_failure")
        names = [name for name in ("job_id", "job", "ref") if name in data]
        unknown = sorted(set(map(str, data)) - {"job_id", "job", "ref", "on_failure"})
        if len(names) != 1 or unknown:
            raise ValidationError("must have job_id or ref, and on_failure if wanted")
        on_failure = data.get("on_failure", "cancel")
        if on_failure not in _CHOICES:
            raise ValidationError({"on_failure": [f"must be one of {', '.join(_CHOICES)}"]})
        value = data[names[0]]
        found = _named(None if names[0] == "ref" else value, value if names[0] == "ref" else None, on_failure)
        if names[0] != "ref" and found.job_id is None:
            raise ValidationError({names[0]: ["must be a UUID"]})
        return found

    def to_representation(self, value: Any) -> Any:
        return value


class ParentsField(serializers.ListField):
    """A list of jobs to wait for."""

    def __init__(self, **more: Any) -> None:
        super().__init__(child=ParentField(), max_length=MAX_PARENTS, **more)


def _named(id_: Any, ref: Any, on_failure: OnFailure) -> Wanted:
    job_id: UUID | None = None
    if isinstance(id_, str):
        try:
            job_id = UUID(id_) if len(id_) == 36 else None
        except ValueError:
            job_id = None
    if ref is not None and not (isinstance(ref, str) and 0 < len(ref) <= MAX_REF_CHARS and ref.isprintable()):
        raise ValidationError({"ref": [f"must be 1 to {MAX_REF_CHARS} printable characters"]})
    return Wanted(job_id, ref, on_failure)
