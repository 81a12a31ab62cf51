"""system.cleanup: a project's ended jobs go to the archive when somebody asks, not only when the scheduler walks by."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from jobs.handlers.base import JobContext, Permanent
from jobs.handlers.registry import handler

MAX_DAYS = 3_650


class BadPayload(ValueError):
    """The payload makes no sense; names the field."""


def check_payload(payload: Any) -> int | None:
    """Read a payload: ``older_than_days``, if it is there.

    Raises:
        BadPayload: names the field that is wrong.
    """
    if not isinstance(payload, dict):
        raise BadPayload("payload: a JSON object is needed")
    if unknown := sorted(set(payload) - {"older_than_days"}):
        raise BadPayload(f"payload.{unknown[0][:50]}: is not known; known is older_than_days")
    days = payload.get("older_than_days")
    if days is not None and (isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MAX_DAYS):
        raise BadPayload(f"payload.older_than_days: a whole number from 1 to {MAX_DAYS} is needed")
    return days


@handler("system.cleanup")
def cleanup(ctx: JobContext) -> dict[str, int]:
    """Archive the project's ended jobs that are past its retention; return how many, and how old they had to be."""
    try:
        days = check_payload(ctx.payload)
    except BadPayload as error:
        raise Permanent(f"bad_payload: {error}") from None
    archived, steps, first_ms = 0, 0, 0
    after: str | None = None
    while True:
        ctx.check()
        step = ctx.clean_up(older_than_days=days, after=after)
        archived, steps, after = archived + step.moved, steps + 1, step.after
        if after is None:
            ctx.progress(100, f"{archived} jobs archived")
            return {"archived": archived, "steps": steps, "kept_days": step.kept_days}
        first_ms = first_ms or _ms(after)
        span_ms = max(1, _ms(step.until) - first_ms)
        ctx.progress(min(99, 100 * (_ms(after) - first_ms) / span_ms), f"{archived} jobs archived")


def _ms(id_: str) -> int:
    """The time in an id."""
    return UUID(id_).int >> 80
