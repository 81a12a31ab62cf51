"""Logs: one event a line, JSON or pretty, with the ids of the moment as fields."""

from __future__ import annotations

import logging
import logging.config
import re
import threading
from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, Protocol, TextIO

import structlog

Event = MutableMapping[str, Any]


class JobFields(Protocol):
    """What a running job adds to each line logged on its behalf."""

    job_id: str
    queue_id: str
    job_type: str
    attempt: int


#: The job this thread or task works for; set by the worker, None outside of handlers.
current_job: ContextVar[JobFields | None] = ContextVar("current_job", default=None)
_SECRET_NAME = re.compile(r"password|secret|token$|api_?key$|authorization|cookie", re.IGNORECASE)
# A password may itself hold an at sign: blotted out up to the last one, rather too much than too little.
_SECRET_TEXT = re.compile(
    r"""(?i)(bearer\s+)[\w.~+/=-]+|(://[^/\s:@]{0,256}:)[^\s"'<>]{1,256}(?=@)|\bpk_[a-z]+_\w+|\bwhsec_[\w+/=-]+"""
)
_DEEPEST = 6


def _with_thread(_logger: object, _method: str, event: Event) -> Event:
    thread = threading.current_thread()
    event["thread"], event["thread_id"] = thread.name, thread.ident
    return event


def _with_job(_logger: object, _method: str, event: Event) -> Event:
    job = current_job.get()
    if job is not None:
        for name in ("job_id", "queue_id", "job_type", "attempt"):
            event.setdefault(name, getattr(job, name))
    return event


def _without_secrets(_logger: object, _method: str, event: Event) -> Event:
    for name, value in event.items():
        event[name] = _clean(name, value, _DEEPEST)
    return event


def _clean(name: str, value: Any, deepest: int) -> Any:
    if _SECRET_NAME.search(name):
        return "***"
    if isinstance(value, str):
        return redact(value)
    if deepest and isinstance(value, dict):
        return {key: _clean(str(key), inner, deepest - 1) for key, inner in value.items()}
    if deepest and isinstance(value, list | tuple):
        return [_clean("", inner, deepest - 1) for inner in value]
    return value


def _redact_line(_logger: object, _method: str, line: str) -> str:
    """Last of all, what only became text when the line was written: errors and objects given as fields."""
    # And what the running handler's payload says is secret, whoever logs it.
    scrub = getattr(current_job.get(), "scrub", None)
    return redact(line if scrub is None else scrub(line))


def redact(text: str) -> str:
    """The text with bearer tokens, passwords in addresses, API keys and signing secrets blotted out."""
    return _SECRET_TEXT.sub(lambda m: f"{m.group(1) or m.group(2) or ''}***", text)


def configure(*, level: str, pretty: bool, stream: TextIO) -> None:
    """Route structlog and the standard library's loggers through the same processors to ``stream``."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        _with_job,
        _with_thread,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _without_secrets,
    ]
    renderer = structlog.dev.ConsoleRenderer(colors=stream.isatty()) if pretty else structlog.processors.JSONRenderer()
    named: list[Any] = [structlog.stdlib.add_logger_name, structlog.processors.EventRenamer("event")]
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "line": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": [*named, *shared],
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        _target,
                        renderer,
                        _redact_line,
                    ],
                }
            },
            "handlers": {"line": {"class": "logging.StreamHandler", "formatter": "line", "stream": stream}},
            "root": {"handlers": ["line"], "level": level.upper()},
            "loggers": {
                "django.db.backends": {"level": "WARNING"},
                "asyncio": {"level": "WARNING"},
                # They log addresses and headers, which may hold secrets.
                "httpx": {"level": "WARNING"},
                "httpcore": {"level": "WARNING"},
            },
        }
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *named,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _target(_logger: object, _method: str, event: Event) -> Event:
    event["target"] = event.pop("logger", "")
    return event


def get(name: str) -> Any:
    """A logger; its events are short names, the rest goes into fields."""
    return structlog.stdlib.get_logger(name)
