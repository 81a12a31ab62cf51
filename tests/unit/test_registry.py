"""Which handler runs which job type."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from jobs.handlers import registry
from jobs.handlers.base import JobContext
from jobs.handlers.registry import HandlerProblem, discover, find_handler, handler, known_types
from jobs.lifecycle.claim import KnownTypes


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No handlers but the test's own."""
    monkeypatch.setattr(registry, "_exact", {})
    monkeypatch.setattr(registry, "_patterns", {})


def register(job_type: str) -> None:
    def run(ctx: JobContext) -> str:
        return job_type

    run.__qualname__ = f"run_{job_type}"
    handler(job_type)(run)


def handled_by(job_type: str) -> str | None:
    found = find_handler(job_type)
    return found.job_type if found else None


def test_an_exact_type_wins_over_every_pattern() -> None:
    for job_type in ("mail.*", "mail.welcome", "mail.welcome*"):
        register(job_type)

    assert handled_by("mail.welcome") == "mail.welcome"


def test_of_patterns_the_longest_that_fits_wins() -> None:
    for job_type in ("m*", "mail.*", "mail.w*", "mail.welcome.*"):
        register(job_type)

    assert [handled_by(t) for t in ("mail.welcome", "mail.bye", "moo", "m", "mail.welcome.now", "x")] == [
        "mail.w*", "mail.*", "m*", "m*", "mail.welcome.*", None,
    ]  # fmt: skip


def test_two_functions_for_one_type_are_refused_and_both_are_named() -> None:
    @handler("mail")
    def first(ctx: JobContext) -> None: ...

    with pytest.raises(HandlerProblem, match=r"'mail' is handled by .*first and by .*second"):

        @handler("mail")
        def second(ctx: JobContext) -> None: ...


def test_the_same_function_may_be_registered_again_when_its_module_is_read_again() -> None:
    def again(ctx: JobContext) -> None: ...

    handler("mail")(again)
    handler("mail", timeout_s=5)(again)

    found = find_handler("mail")
    assert found is not None
    assert found.timeout_s == 5


def test_one_function_may_stand_for_several_types() -> None:
    @handler("a")
    @handler("b")
    def both(ctx: JobContext) -> None: ...

    assert known_types() == (["a", "b"], [])


@pytest.mark.parametrize(
    "name", ["", "*", "1st", "_x", ".x", "a b", "a\n", "ä", "a%", "a'b", "a*b", "a**", "x" * 201, "a,b", "a\0"]
)
def test_malformed_types_are_refused(name: str) -> None:
    with pytest.raises(HandlerProblem, match="is not a job type"):
        handler(name)


@pytest.mark.parametrize("name", ["a", "Mail.welcome-2:x_y", "sleep_*", "x" * 199])
def test_well_formed_types_are_taken(name: str) -> None:
    register(name)

    assert handled_by(name.replace("*", "5")) == name


def test_async_functions_are_told_from_sync_ones() -> None:
    @handler("sync")
    def sync(ctx: JobContext) -> None: ...

    @handler("async")
    async def asynchronous(ctx: JobContext) -> None: ...

    found = find_handler("sync"), find_handler("async")
    assert [f.is_async for f in found if f] == [False, True]


def test_where_a_handler_runs_is_its_own_kind_or_a_process() -> None:
    def sync(ctx: JobContext) -> None: ...

    async def asynchronous(ctx: JobContext) -> None: ...

    for number, (function, wanted, found_in) in enumerate(
        [(sync, None, "thread"), (sync, "thread", "thread"), (sync, "process", "process"),
         (asynchronous, None, "async"), (asynchronous, "async", "async"), (asynchronous, "process", "process")]
    ):  # fmt: skip
        handler(f"x{number}", isolation=wanted)(function)  # type: ignore[arg-type]
        found = find_handler(f"x{number}")
        assert found is not None
        assert found.isolation == found_in


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"isolation": "async"}, "isolation of a sync function is 'thread' or 'process', not 'async'"),
        ({"isolation": "fiber"}, "not 'fiber'"),
        ({"memory_mb": 100}, "memory_mb is 0 or more, and goes with isolation='process'"),
        ({"memory_mb": -1, "isolation": "process"}, "memory_mb is 0 or more"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], text: str) -> None:
    def sync(ctx: JobContext) -> None: ...

    with pytest.raises(HandlerProblem, match=text):
        handler("x", **options)(sync)


def test_a_module_that_can_not_be_imported_is_named(settings: Settings) -> None:
    settings.HANDLER_MODULES = ["no.such.module"]

    with pytest.raises(HandlerProblem, match=r"APP_HANDLER_MODULES names 'no\.such\.module'"):
        discover()


def test_an_underscore_in_a_pattern_is_no_joker_for_the_database() -> None:
    assert KnownTypes.of([], ["sleep_*"]).patterns == r'{"sleep\\_%"}'
