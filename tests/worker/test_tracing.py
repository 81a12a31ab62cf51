"""With APP_TRACING each attempt has a span that goes on with the job's trace; without it, nothing is loaded."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from scheduler_project.lib import tracing
from tests.worker_parts import Bench, lease_of, own_handlers

ROOT = Path(__file__).parents[2]
TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACE = f"00-{TRACE_ID}-{SPAN_ID}-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch, settings: Any) -> InMemorySpanExporter:
    """Tracing is on, and what is exported stays here."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    settings.TRACING = True
    return exporter


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A worker's executor, with handlers of the test's own."""
    monkeypatch.setattr("jobs.worker.executor.has_open_connection", lambda: False)
    with own_handlers() as bench:
        monkeypatch.setattr(bench.executor, "_run_isolated", lambda *_: None)
        yield bench


def run(bench: Bench, function: Any, trace_id: str = TRACE) -> Any:
    bench.handle("x", function)
    lease = lease_of("x")._replace(trace_id=trace_id)
    if asyncio.iscoroutinefunction(function):
        asyncio.run(bench.executor.run_async(lease))
    else:
        bench.executor.run_sync(lease)
    return lease


def test_the_span_of_an_attempt_goes_on_with_the_trace_of_its_job(spans: InMemorySpanExporter, bench: Bench) -> None:
    seen = []
    lease = run(bench, lambda ctx: seen.append(tracing.current()))

    [span] = spans.get_finished_spans()
    assert (span.name, span.kind) == ("x", SpanKind.CONSUMER)
    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE_ID, SPAN_ID)
    assert span.attributes is not None
    assert span.attributes["punctual.job.id"] == lease.job_id
    # What the handler submits goes on from its own span.
    assert seen == [f"00-{TRACE_ID}-{span.context.span_id:016x}-01"]
    assert not trace.get_current_span().get_span_context().is_valid


def test_on_an_event_loop_as_well(spans: InMemorySpanExporter, bench: Bench) -> None:
    async def handler(ctx: Any) -> None:
        await asyncio.sleep(0)

    run(bench, handler)

    [span] = spans.get_finished_spans()
    assert f"{span.context.trace_id:032x}" == TRACE_ID


@pytest.mark.parametrize("trace_id", ["", "order 17"])
def test_a_job_without_a_trace_begins_one(spans: InMemorySpanExporter, bench: Bench, trace_id: str) -> None:
    run(bench, lambda ctx: None, trace_id)

    [span] = spans.get_finished_spans()
    assert span.parent is None


def test_what_a_handler_raises_is_not_exported(spans: InMemorySpanExporter, bench: Bench) -> None:
    def fails(ctx: Any) -> None:
        raise ValueError("hunter2")

    lease = run(bench, fails)

    [span] = spans.get_finished_spans()
    assert "hunter2" not in span.to_json()
    assert "hunter2" in bench.endings.verdict(lease).error


def test_a_child_leaves_the_span_to_its_worker(
    spans: InMemorySpanExporter, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.executor, "_run_isolated", None)
    run(bench, lambda ctx: None)

    assert spans.get_finished_spans() == ()


def python(program: str, **env: str) -> subprocess.CompletedProcess[str]:
    unset = {k: v for k, v in os.environ.items() if not k.startswith(("APP_", "PYTEST_"))}
    given = {**unset, "DJANGO_SETTINGS_MODULE": "scheduler_project.settings", **env}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=given, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_nothing_is_loaded_when_it_is_off() -> None:
    program = (
        "import sys, django; django.setup(); from scheduler_project.lib import tracing; import jobs.worker.runtime;"
        "tracing.current(); print(any(name.startswith('opentelemetry') for name in sys.modules))"
    )

    done = python(program)
    assert done.stdout.strip() == "False", done.stderr


def test_it_can_not_be_on_without_the_package_and_says_what_is_missing() -> None:
    program = "import sys; sys.modules['opentelemetry'] = None; import scheduler_project.settings"

    done = python(program, APP_TRACING="true")
    assert done.returncode == 1
    assert "APP_TRACING='true' is not usable: the package opentelemetry-api must be installed" in done.stderr
    assert python(program).returncode == 0
