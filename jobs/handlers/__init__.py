"""Handlers: user work, and the few that come with the product.

``from jobs.handlers import handler`` and declare::

    @handler("mail.welcome")
    def welcome(ctx):
        ctx.log(f"writing to {ctx.payload['to']}")
"""

from jobs.handlers import cleanup as _cleanup  # noqa: F401 - registers the built-in types
from jobs.handlers import django_task as _django_task  # noqa: F401
from jobs.handlers import email as _email  # noqa: F401
from jobs.handlers import shell as _shell  # noqa: F401
from jobs.handlers import testing as _testing  # noqa: F401
from jobs.handlers import webhook as _webhook  # noqa: F401
from jobs.handlers.base import Cancel, Discard, JobContext, Permanent, RetryAfter, Snooze, Stopped
from jobs.handlers.registry import handler
from scheduler_project.lib.typed_json import Field, Secret

__all__ = [
    "Cancel", "Discard", "Field", "JobContext", "Permanent", "RetryAfter", "Secret", "Snooze", "Stopped", "handler",
]  # fmt: skip
