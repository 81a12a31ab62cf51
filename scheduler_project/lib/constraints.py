"""Turns what the database refuses into an answer. The constraint decides, so two requests at once can not both win."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
from django.db import IntegrityError, transaction

from scheduler_project.lib.errors import Conflict, DomainError, FieldError


@contextmanager
def refusals(answers: Mapping[str, DomainError]) -> Iterator[None]:
    """Run the block in a transaction; if a constraint is violated that is named here, raise its answer."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        name = _violated(error)
        answer = answers.get(name) or answers.get(_of_whole_table(name))
        if answer is None:
            raise
        raise answer from None


def taken(field: str, message: str) -> Conflict:
    """The answer for a value that must be unique and is not."""
    return Conflict(f"{field}: {message}", [FieldError(field, message)])


def _of_whole_table(name: str) -> str:
    """The constraint that one of a partition or shard stands for, where these are named by number."""
    return re.sub(r"_\d+$", "", name)


def _violated(error: IntegrityError) -> str:
    cause = error.__cause__
    return (cause.diag.constraint_name or "") if isinstance(cause, psycopg.Error) else ""
