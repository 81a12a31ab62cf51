"""Handlers of a user's app, for the tests of the test helpers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from django.db import transaction

from jobs.handlers import Discard, Field, JobContext, Secret, handler
from jobs.lifecycle.submit import NewJob, submit_job
from queues.models import Queue


@dataclass
class Welcome:
    to: Annotated[str, Field(format="email")]
    token: Annotated[str, Secret]
    copies: Annotated[int, Field(ge=1, le=10)] = 1


@handler("shop.welcome", payload=Welcome)
def welcome(ctx: JobContext, mail: Welcome) -> dict[str, int]:
    """Write to a new customer."""
    for number in range(mail.copies):
        ctx.check()
        ctx.log(f"copy {number + 1} to {mail.to} with {mail.token}")
        ctx.progress(100 * (number + 1) / mail.copies)
    return {"sent": mail.copies}


@handler("shop.order")
def order(ctx: JobContext, queue: str, customer: str) -> None:
    """Take an order and welcome the customer."""
    with transaction.atomic():
        payload = {"to": customer, "token": f"t-{customer}"}
        submit_job(Queue.objects.get(pk=queue), NewJob(job_type="shop.welcome", payload=payload, priority=3))


@handler("shop.flaky")
async def flaky(ctx: JobContext, good_from: int = 2) -> int:
    """Fail before an attempt."""
    if ctx.attempt < good_from:
        raise RuntimeError(f"attempt {ctx.attempt}")
    return ctx.attempt


@handler("shop.count")
async def count(ctx: JobContext) -> int:
    """Count the queues, over the ORM."""
    return await Queue.objects.acount()


@handler("shop.sum")
def total(ctx: JobContext) -> int:
    """Add up what the parents returned, unless there are none."""
    parents = ctx.parent_results()
    if not parents:
        raise Discard("nothing to add")
    return sum(parents.values())


@handler("shop.endless")
def endless(ctx: JobContext, queue: str) -> None:
    """Submit itself."""
    submit_job(Queue.objects.get(pk=queue), NewJob(job_type="shop.endless", payload={"queue": queue}))
