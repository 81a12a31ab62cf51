"""The job type in a body."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import ValidationError

from jobs.handlers.registry import known_handler
from jobs.new_job import MAX_TYPE_CHARS
from scheduler_project.lib.rest.fields import Text


class JobType(Text):
    """A job type that may be asked for from outside: not one of those that only code of this installation submits."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_TYPE_CHARS, trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        job_type: str = super().to_internal_value(data)
        found = known_handler(job_type)
        if found is not None and found.is_internal:
            raise ValidationError("is submitted by code of this installation only")
        return job_type
