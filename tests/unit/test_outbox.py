"""Log lines and progress kept for the next round trip, within limits."""

from __future__ import annotations

import pytest

from jobs.states import LogLevel
from jobs.worker import outbox as module
from jobs.worker.outbox import MAX_LINE_CHARS, MAX_NOTE_CHARS, Outbox
from tests.threads import run_together
from tests.worker_parts import context_of


def test_an_empty_outbox_is_false_and_gives_nothing() -> None:
    outbox = Outbox()

    assert not outbox
    assert outbox.empty() == ([], [])


def test_lines_come_out_once_in_the_order_they_were_logged() -> None:
    outbox = Outbox()
    ctx = context_of(outbox=outbox)
    for number in range(5):
        ctx.log(f"line {number}", "warning")

    lines, _ = outbox.empty()

    assert [(line.message, line.level, line.token) for line in lines] == [
        (f"line {number}", "warning", ctx.token) for number in range(5)
    ]
    assert not outbox


@pytest.mark.parametrize(
    "level", ["fatal", "warn", "critical", "INFO ", "", "a,b", '"}', "bind", "x" * 50, "exception"]
)
def test_a_level_the_database_would_refuse_becomes_info(level: str) -> None:
    outbox = Outbox()

    context_of(outbox=outbox).log("hello", level)  # type: ignore[arg-type]

    assert [line.level for line in outbox.empty()[0]] == ["info"]


@pytest.mark.parametrize("level", LogLevel.values)
def test_known_levels_stay_as_they_are(level: str) -> None:
    outbox = Outbox()

    context_of(outbox=outbox).log("hello", level)  # type: ignore[arg-type]

    assert [line.level for line in outbox.empty()[0]] == [level]


def test_long_lines_are_cut_and_hostile_characters_replaced() -> None:
    outbox = Outbox()
    ctx = context_of(outbox=outbox)

    ctx.log("x" * 1_000_000)
    ctx.log("a\0b\ud83d")

    long, odd = (line.message for line in outbox.empty()[0])
    assert len(long) <= MAX_LINE_CHARS
    assert "characters cut" in long
    assert odd == "a\N{REPLACEMENT CHARACTER}b?"


def test_secrets_in_lines_are_blotted_out() -> None:
    outbox = Outbox()

    context_of(outbox=outbox).log("GET http://ann:hunter2@x with Bearer abc")

    assert outbox.empty()[0][0].message == "GET http://ann:***@x with Bearer ***"


def test_lines_beyond_the_limit_are_dropped_and_the_loss_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MAX_LINES", 3)
    outbox = Outbox()
    ctx = context_of(outbox=outbox)
    for number in range(8):
        ctx.log(str(number))

    lines, _ = outbox.empty()

    assert [line.message for line in lines] == ["0", "1", "2"]
    assert "log_lines_dropped" in caplog.text
    caplog.clear()
    assert outbox.empty() == ([], [])
    assert "log_lines_dropped" not in caplog.text


def test_only_the_latest_progress_of_each_job_is_kept() -> None:
    outbox = Outbox()
    one, other = context_of(outbox=outbox), context_of(outbox=outbox)

    for percent in range(0, 101, 10):
        one.progress(percent)
    other.progress(5)

    assert {(news.token, news.percent) for news in outbox.empty()[1]} == {(one.token, 100), (other.token, 5)}


def test_the_last_progress_survives_any_number_before_it() -> None:
    outbox = Outbox()
    ctx = context_of(outbox=outbox)

    for _ in range(module.MAX_LINES + 10):
        ctx.progress(1)
    ctx.progress(100, "done")

    assert [(news.percent, news.note) for news in outbox.empty()[1]][-1] == (100, "done")


def test_long_notes_are_cut_to_what_the_column_holds() -> None:
    outbox = Outbox()

    context_of(outbox=outbox).progress(1, "ä\0" * 10_000)

    note = outbox.empty()[1][0].note
    assert note is not None
    assert len(note) == MAX_NOTE_CHARS
    assert "\0" not in note


def test_what_could_not_be_sent_goes_out_first_the_next_time() -> None:
    outbox = Outbox()
    ctx = context_of(outbox=outbox)
    ctx.log("first")
    ctx.progress(10)
    lines, progress = outbox.empty()
    ctx.log("second")

    outbox.put_back(lines, progress)

    lines, progress = outbox.empty()
    assert [line.message for line in lines] == ["first", "second"]
    assert [news.percent for news in progress] == [10]


def test_progress_that_could_not_be_sent_does_not_replace_newer_one() -> None:
    outbox = Outbox()
    ctx = context_of(outbox=outbox)
    ctx.progress(10)
    lines, progress = outbox.empty()
    ctx.progress(90)

    outbox.put_back(lines, progress)

    assert outbox.empty()[1][-1].percent == 90


def test_putting_back_again_and_again_stays_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINES", 4)
    outbox = Outbox()
    ctx = context_of(outbox=outbox)
    for round_ in range(5):
        for number in range(3):
            ctx.log(f"{round_}.{number}")
        outbox.put_back(*outbox.empty())

    assert [line.message for line in outbox.empty()[0]] == ["0.0", "0.1", "0.2", "1.0"]


def test_many_threads_lose_no_line() -> None:
    outbox = Outbox()
    taken: list[str] = []

    def write(name: str) -> None:
        ctx = context_of(outbox=outbox)
        for number in range(200):
            ctx.log(f"{name}.{number}")

    def take() -> None:
        for _ in range(200):
            taken.extend(line.message for line in outbox.empty()[0])

    run_together([*[lambda name=str(n): write(name) for n in range(4)], take])
    taken += [line.message for line in outbox.empty()[0]]

    assert len(taken) == len(set(taken)) == 800
