"""Submit jobs to Punctual, wait for them and manage them.

::

    from punctual_client import Client

    with Client("https://punctual.example", api_key=KEY) as punctual:
        job = punctual.submit("mail.send", {"to": "ada@example.com"}, queue="mail")
        print(punctual.wait(job.id, timeout_s=60).result)
"""

from punctual_client.client import Client
from punctual_client.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    PunctualError,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    ValidationFailed,
    WaitTimeout,
)
from punctual_client.jobs import BulkItem, Job, NewJob

__all__ = [
    "BadRequest",
    "BulkItem",
    "Client",
    "Conflict",
    "Forbidden",
    "Job",
    "NewJob",
    "NotFound",
    "PunctualError",
    "ServerError",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "ValidationFailed",
    "WaitTimeout",
]
