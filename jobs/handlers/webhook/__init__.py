"""http.webhook: call an HTTP address on behalf of a customer."""

from jobs.handlers.webhook import handler as _handler  # noqa: F401 - registers the type
from jobs.handlers.webhook.payload import BadPayload, check_payload

__all__ = ["BadPayload", "check_payload"]
