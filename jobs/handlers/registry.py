"""Which handler runs which job type."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeVar

from django.apps import apps
from django.conf import settings
from django.utils.module_loading import autodiscover_modules, module_has_submodule

from jobs.handlers.payloads import ANYTHING, Declared, Payload, SecretFields, declare
from scheduler_project.lib import logs
from scheduler_project.lib.json_schema import BadSchema
from scheduler_project.lib.typed_json import BadType

log = logs.get(__name__)

F = TypeVar("F", bound=Callable[..., Any])
#: Where a handler runs: in a thread or on the event loop of the worker, or in a process of its own.
Isolation = Literal["thread", "async", "process"]
#: Whether a handler has a circuit breaker: True for one a project, a function of the payload for one a target.
Circuit = bool | Callable[[Any], str | None]
MAX_CIRCUIT_CHARS = 300
#: Looks at a payload before its job is submitted; a ValueError says what is wrong, as in "payload.url: is no URL".
Check = Callable[[Any], object]
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,198}\*?")


@dataclass(frozen=True, slots=True)
class Handler:
    """A function with the job type it stands for; a type that ends in a star stands for all that begin alike."""

    job_type: str
    run: Callable[..., Any]
    is_async: bool
    timeout_s: float | None
    circuit: Circuit = False
    check: Check | None = None
    payload: Payload = ANYTHING
    #: Submitted by code of this installation alone, never through the API.
    is_internal: bool = False
    isolation: Isolation = "thread"
    #: What it may take in a process of its own; None: as the setting says, 0: without limit.
    memory_mb: int | None = None
    #: What it writes commits together with the end of its attempt, or not at all.
    is_transactional: bool = False

    @property
    def description(self) -> str:
        """What it does: the first paragraph of the function's docstring."""
        return inspect.cleandoc(self.run.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


_exact: dict[str, Handler] = {}
_patterns: dict[str, Handler] = {}


class HandlerProblem(Exception):
    """A handler is declared in a way that can not work; says where."""


def handler(  # noqa: PLR0913 - named options, each with a default
    job_type: str,
    *,
    timeout_s: float | None = None,
    circuit: Circuit = False,
    check: Check | None = None,
    payload: Declared = None,
    secret_fields: SecretFields = (),
    is_internal: bool = False,
    isolation: Isolation | None = None,
    memory_mb: int | None = None,
    transactional: bool = False,
) -> Callable[[F], F]:
    """Register a function, sync (runs in a thread) or async (runs on the event loop), for a job type.

    Args:
        job_type: letters, digits and ``_ . : -``; a star at the end stands for any rest.
        timeout_s: how long one attempt may take. An async handler is cancelled then; a sync one sees it in
            ``ctx``, then has an exception thrown into it, and is at last left behind (worker/watchdog.py).
        circuit: True gives the handler a circuit breaker in each project; a function of the payload names the target
            that the breaker is for, such as a host, and returns None for none.
        check: looks at a payload before its job is submitted; a ValueError refuses it.
        payload: the form of the payload: a dataclass, a TypedDict or a JSON schema (2020-12); else as the function's
            parameters behind ``ctx`` say. A job with another payload is refused (docs/handlers/payloads.md).
        secret_fields: parts of the payload that are sealed at rest and masked: ``("token", "headers.Authorization")``.
        is_internal: jobs of this type are submitted by code only, never through the API.
        isolation: "process" runs each attempt, sync or async, in a process that may crash or be killed without harm to
            the worker (docs/handlers/writing.md); else a sync handler runs in a "thread", an async one "async".
        memory_mb: how much a handler in a process of its own may take; 0 is no limit, None the worker's setting.
        transactional: a sync handler runs in a database transaction, in which its job is completed too: either all it
            wrote through Django is there and the job is completed, or nothing is (docs/handlers/writing.md).

    Raises:
        HandlerProblem: a malformed type, one that another function stands for, options that do not go together, or a
            payload that can not be so.
    """
    if not _NAME.fullmatch(job_type):
        raise HandlerProblem(f"{job_type!r} is not a job type: a letter, then letters, digits and _ . : - are allowed")

    def register(function: F) -> F:
        table = _patterns if job_type.endswith("*") else _exact
        known = table.get(job_type)
        if known is not None and _place(known.run) != _place(function):
            raise HandlerProblem(f"{job_type!r} is handled by {_place(known.run)} and by {_place(function)}")
        try:
            rule, run = declare(function, payload, secret_fields)
        except (BadSchema, BadType) as error:
            raise HandlerProblem(f"{job_type!r} ({_place(function)}) declares its payload badly: {error}") from None
        if transactional and inspect.iscoroutinefunction(function):
            raise HandlerProblem(f"{_place(function)}: Django has no transactions for async code: write it sync")
        table[job_type] = Handler(
            job_type,
            run,
            inspect.iscoroutinefunction(function),
            timeout_s,
            circuit,
            check,
            rule,
            is_internal=is_internal,
            isolation=_isolation_of(function, isolation, memory_mb),
            memory_mb=memory_mb,
            is_transactional=transactional,
        )
        return function

    return register


def _isolation_of(function: Callable[..., Any], wanted: Isolation | None, memory_mb: int | None) -> Isolation:
    own: Isolation = "async" if inspect.iscoroutinefunction(function) else "thread"
    if wanted not in (None, own, "process"):
        kind = "an async function" if own == "async" else "a sync function"
        raise HandlerProblem(f"{_place(function)}: isolation of {kind} is {own!r} or 'process', not {wanted!r}")
    if memory_mb is not None and (wanted != "process" or memory_mb < 0):
        raise HandlerProblem(f"{_place(function)}: memory_mb is 0 or more, and goes with isolation='process'")
    return wanted or own


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def find_handler(job_type: str) -> Handler | None:
    """The handler of a job type: the exact one, else the longest pattern that fits."""
    found = _exact.get(job_type)
    if found is None and _patterns:
        fitting = [p for p in _patterns if job_type.startswith(p[:-1])]
        found = _patterns[max(fitting, key=len)] if fitting else None
    return found


def circuit_of(job_type: str, payload: Any) -> str | None:
    """The name of the circuit breaker that a job goes by: its type, and its target if the handler names one."""
    found = find_handler(job_type)
    if found is None or not found.circuit:
        return None
    if found.circuit is True:
        return job_type
    try:
        target = found.circuit(payload)
    except Exception:  # noqa: BLE001 - boundary: user code, asked about user input; the handler itself will complain
        return None
    return f"{job_type} {target}"[:MAX_CIRCUIT_CHARS] if target else None


def payload_problem(job_type: str, payload: Any) -> tuple[str, str] | None:
    """What the handler has against a payload, as (field, message); None if nothing, or if no handler is known here."""
    found = find_handler(job_type)
    if found is None or found.check is None:
        return None
    try:
        found.check(payload)
    except ValueError as error:
        field, _, message = str(error).partition(": ")
        return (field, message) if field.startswith("payload") and message else ("payload", str(error))
    return None


def known_types() -> tuple[list[str], list[str]]:
    """(exact job types, patterns) with a handler here."""
    return sorted(_exact), sorted(_patterns)


def known_handler(job_type: str) -> Handler | None:
    """As ``find_handler``, for a process that only submits: reads the handlers of the installed apps when first asked.

    What can not be read here is left out and told in the log: its job types are unknown to this process, and a worker
    judges their payloads. A web server need not have everything installed that the workers have.
    """
    if not _discovery.is_done:
        with _discovery.lock:
            if not _discovery.is_done:
                _read_what_can_be_read()
                _discovery.is_done = True
    return find_handler(job_type)


def list_handlers() -> list[Handler]:
    """All handlers this process knows, by job type."""
    known_handler("")
    return sorted([*_exact.values(), *_patterns.values()], key=lambda found: found.job_type)


def discover() -> None:
    """Import ``handlers`` of every installed app and the modules of APP_HANDLER_MODULES.

    Raises:
        HandlerProblem: a named module can not be imported.
    """
    autodiscover_modules("handlers")
    for name in settings.HANDLER_MODULES:
        try:
            import_module(name)
        except ImportError as error:
            raise HandlerProblem(f"APP_HANDLER_MODULES names {name!r}, which can not be imported: {error}") from error
    _discovery.is_done = True


class _Discovery:
    """Whether the handlers have been read."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_done = False


_discovery = _Discovery()


def _read_what_can_be_read() -> None:
    found = [f"{app.name}.handlers" for app in apps.get_app_configs() if module_has_submodule(app.module, "handlers")]
    for name in [*found, *settings.HANDLER_MODULES]:
        try:
            import_module(name)
        except Exception as error:  # noqa: BLE001 - boundary: whatever somebody's module does when it is read
            log.warning("handlers_not_read", module=name, error=f"{type(error).__name__}: {error}"[:500])
