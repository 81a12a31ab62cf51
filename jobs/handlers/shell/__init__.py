"""shell.command: run a program from the installation's list."""

from jobs.handlers.shell import handler as _handler  # noqa: F401 - registers the type
from jobs.handlers.shell.payload import BadPayload, check_payload

__all__ = ["BadPayload", "check_payload"]
