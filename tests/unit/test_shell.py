"""shell.command without a database: what it refuses, what it keeps, how commands end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from jobs.handlers.base import JobContext, Permanent, StopReason
from jobs.handlers.shell import BadPayload, check_payload
from jobs.handlers.shell.handler import ShellFailed, shell
from jobs.handlers.shell.output import BURST_LINES, HEAD_BYTES, MAX_LINE_BYTES, TAIL_BYTES, Output
from jobs.worker.outbox import Outbox
from scheduler_project.lib.programs import NotAllowed, NotHere, Programs, read_variable_names
from tests.waiting import wait_until
from tests.worker_parts import context_of, lease_of


@pytest.fixture(autouse=True)
def allowed(settings: Any) -> None:
    settings.SHELL_PATH = os.defpath
    settings.SHELL_PROGRAMS = Programs.of(["sh", "echo", "cat", "env", "sleep"], os.defpath)
    settings.SHELL_ENV = ["LANG"]


def context(payload: Any, outbox: Outbox | None = None) -> JobContext:
    return context_of(lease_of("shell.command", payload), outbox=outbox)


def run(*argv: str, outbox: Outbox | None = None, **payload: Any) -> dict[str, Any]:
    return asyncio.run(shell(context({"argv": list(argv), **payload}, outbox)))


def lines_of(outbox: Outbox) -> list[str]:
    return [line.message for line in outbox.empty()[0]]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# -- what it takes ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ([], "payload:"),
        ({}, "payload.argv"),
        ({"argv": "echo hello"}, "payload.argv"),
        ({"argv": []}, "payload.argv"),
        ({"argv": ["echo", 1]}, "payload.argv[1]"),
        ({"argv": ["echo", "a\0b"]}, "payload.argv[1]"),
        ({"argv": ["echo", "\ud800"]}, "payload.argv[1]"),
        ({"argv": ["echo", "x" * 100_001]}, "payload.argv[1]"),
        ({"argv": ["echo"] + ["x" * 99_000] * 6}, "payload.argv"),
        ({"argv": ["echo"], "env": {"A=B": "x"}}, "payload.env"),
        ({"argv": ["echo"], "env": {"A": 1}}, "payload.env.A"),
        ({"argv": ["echo"], "stdin": 5}, "payload.stdin"),
        ({"argv": ["echo"], "timeout_s": 0}, "payload.timeout_s"),
        ({"argv": ["echo"], "timeout_s": True}, "payload.timeout_s"),
        ({"argv": ["echo"], "cwd": "tmp"}, "payload.cwd"),
        ({"argv": ["echo"], "cwd": "/tmp/../etc"}, "payload.cwd"),
        ({"argv": ["echo"], "retry_codes": [0]}, "payload.retry_codes"),
        ({"argv": ["echo"], "permanent_codes": ["1"]}, "payload.permanent_codes"),
        ({"argv": ["echo"], "shell": True}, "payload.shell"),
    ],
)
def test_bad_payload_names_its_field(payload: Any, field: str) -> None:
    with pytest.raises(BadPayload) as caught:
        check_payload(payload)
    assert str(caught.value).startswith(field)


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "ld_preload", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "PYTHONSTARTUP", "PERL5LIB",
     "BASH_ENV", "ENV", "IFS", "PATH", "HOME", "NODE_OPTIONS", "GIT_SSH_COMMAND", "RUBYOPT", "APP_SECRET_KEY",
     "GCONV_PATH", "GLIBC_TUNABLES", "JAVA_TOOL_OPTIONS", "PAGER", "EDITOR"],
)  # fmt: skip
def test_variables_that_load_code_are_refused(name: str) -> None:
    with pytest.raises(BadPayload, match=f"payload.env.{name}: is refused") as caught:
        check_payload({"argv": ["echo"], "env": {name: "the value"}})
    assert "the value" not in str(caught.value)


def test_nothing_runs_unless_the_list_is_set(settings: Any) -> None:
    settings.SHELL_PROGRAMS = Programs()
    with pytest.raises(Permanent, match=r"not_allowed: shell\.command is off; APP_SHELL_COMMANDS"):
        run("echo", "x")


@pytest.mark.parametrize("program", ["ls", "./echo", "../bin/echo", "/bin/../bin/echo", "echo ", "", "sh -c true"])
def test_program_must_be_exactly_one_of_the_list(program: str) -> None:
    with pytest.raises(Permanent, match="not_allowed"):
        run(program)


# -- the list of programs --------------------------------------------------------------------------------------
def program_in(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\necho $0\n")
    path.chmod(0o755)
    return path


def test_link_that_was_turned_since_the_start_is_refused(tmp_path: Path) -> None:
    first, second = program_in(tmp_path, "first"), program_in(tmp_path, "second")
    link = tmp_path / "tool"
    link.symlink_to(first)
    programs = Programs.of(["tool"], str(tmp_path))
    assert programs.find("tool") == programs.find(str(link)) == str(first)
    link.unlink()
    link.symlink_to(second)
    for name in ("tool", str(link)):
        with pytest.raises(NotAllowed, match="another file now"):
            programs.find(name)


def test_link_to_an_allowed_program_is_not_allowed_itself(tmp_path: Path) -> None:
    link = tmp_path / "mine"
    link.symlink_to(program_in(tmp_path, "tool"))
    with pytest.raises(NotAllowed):
        Programs.of(["tool"], str(tmp_path)).find(str(link))


def test_relative_entries_stop_the_start_and_relative_parts_of_the_path_find_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bad in ("./tool", "bin/tool", "/usr/../bin/sh"):
        with pytest.raises(ValueError, match=r"tool|sh"):
            Programs.of([bad], os.defpath)
    program_in(tmp_path, "tool")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotHere):
        Programs.of(["tool"], ".:").find("tool")


@pytest.mark.parametrize("bad", ["APP_SECRET_KEY", "app_jwt_secret", "A B", "A=1"])
def test_our_own_settings_are_never_passed_on(bad: str) -> None:
    with pytest.raises(ValueError, match=bad):
        read_variable_names(f"LANG,{bad}")


# -- how commands end ------------------------------------------------------------------------------------------
def test_arguments_stay_as_they_are(tmp_path: Path) -> None:
    text = "$(touch pwned); `touch pwned`; x | touch pwned > pwned && * ~ \"'\\ ünïcödé"
    assert run("echo", text, cwd=str(tmp_path))["output"] == text + "\n"
    assert list(tmp_path.iterdir()) == []


def test_standard_input_is_the_text_or_nothing() -> None:
    big = "äöü\n" * 100_000
    assert run("sh", "-c", "wc -c", stdin=big)["output"].strip() == str(len(big.encode()))
    assert run("cat")["output"] == ""


def test_environment_comes_from_the_lists_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("APP_SECRET_KEY", "not for you")
    found = run("env", env={"COLOUR": "blue"})["output"].splitlines()
    assert sorted(found) == ["COLOUR=blue", "LANG=C.UTF-8", f"PATH={os.defpath}"]


def test_a_command_works_in_an_empty_folder_of_its_own_that_is_removed() -> None:
    folder = run("sh", "-c", "pwd; ls -A; echo x > file")["output"].strip()
    assert os.path.isabs(folder)
    assert not os.path.exists(folder)


def test_result_of_a_good_command() -> None:
    outbox = Outbox()
    result = run("sh", "-c", "echo one; echo two >&2; printf three", outbox=outbox)
    assert result["duration_ms"] >= 0
    assert {k: v for k, v in result.items() if k != "duration_ms"} == {
        "exit_code": 0, "output": "one\ntwo\nthree", "output_bytes": 13, "cut_bytes": 0,
    }  # fmt: skip
    assert lines_of(outbox) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        ({}, ShellFailed),
        ({"permanent_codes": [3]}, Permanent),
        ({"permanent_codes": [4]}, ShellFailed),
        ({"retry_codes": [3]}, ShellFailed),
        ({"retry_codes": [4]}, Permanent),
        ({"retry_codes": [3], "permanent_codes": [3]}, Permanent),
    ],
)
def test_exit_codes_are_mapped(codes: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="exit_code: the command ended with 3; its last lines:\nwent wrong"):
        run("sh", "-c", "echo went wrong; exit 3", **codes)


def test_signal_is_named() -> None:
    with pytest.raises(ShellFailed, match="killed: the command was ended by SIGSEGV"):
        run("sh", "-c", "kill -SEGV $$")


def test_missing_folder_is_permanent() -> None:
    with pytest.raises(Permanent, match="not_started: No such file"):
        run("echo", cwd="/not/there")


def test_timeout_ends_the_whole_tree_also_what_ignores_term_or_left_the_session(tmp_path: Path) -> None:
    script = """
        trap '' TERM
        sleep 300 & echo $! >> pids
        setsid sleep 300 & echo $! >> pids
        (setsid sh -c 'trap "" TERM; echo $$ >> pids; sleep 300; sleep 300' &)
        echo $$ >> pids
        while :; do sleep 300; done"""
    with pytest.raises(ShellFailed, match="timeout: the command did not end within 1 s"):
        run("sh", "-c", script, timeout_s=1, cwd=str(tmp_path))
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 4
    assert not any(map(is_alive, pids))


def test_what_a_command_leaves_behind_is_killed_and_not_waited_for(tmp_path: Path) -> None:
    script = "(setsid sleep 300 & echo $! > pid) ; sleep 300 & echo done"
    assert run("sh", "-c", script, cwd=str(tmp_path))["output"] == "done\n"
    assert not is_alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("reason", ["cancelled", "interrupted", "lost"])
def test_stopped_handler_takes_its_command_along(tmp_path: Path, reason: StopReason) -> None:
    async def scene() -> None:
        ctx = context({"argv": ["sh", "-c", "trap '' TERM; echo $$ > pid; sleep 300; sleep 300"], "cwd": str(tmp_path)})
        task = asyncio.create_task(shell(ctx))
        ctx.bind_task(asyncio.get_running_loop(), task)
        await asyncio.to_thread(wait_until, lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        ctx.stop(reason)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_killed_guard_takes_its_command_along(tmp_path: Path) -> None:
    with pytest.raises(ShellFailed, match="not_started: the process that watches over the command ended"):
        run("sh", "-c", "echo $$ > pid; kill -KILL $PPID; sleep 300", cwd=str(tmp_path))
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_alive(pid), what="the command dies with its guard")


# -- what it keeps ---------------------------------------------------------------------------------------------
def collect() -> tuple[Output, list[str]]:
    lines: list[str] = []
    return Output(lines.append), lines


def test_short_output_is_kept_whole_and_a_byte_more_is_cut() -> None:
    output, _ = collect()
    output.feed(b"a" * HEAD_BYTES)
    output.feed(b"b" * TAIL_BYTES)
    assert (output.cut_bytes, output.kept()) == (0, "a" * HEAD_BYTES + "b" * TAIL_BYTES)
    output.feed(b"c")
    assert output.cut_bytes == 1
    assert output.kept() == "a" * HEAD_BYTES + "\n[... 1 bytes were cut here ...]\n" + "b" * (TAIL_BYTES - 1) + "c"


@pytest.mark.parametrize("size", [1, 7, 65_536, 1_000_000])
def test_any_cutting_into_chunks_keeps_the_same(size: int) -> None:
    data = b"".join(b"line %d\n" % number for number in range(20_000))
    output, lines = collect()
    for start in range(0, len(data), size):
        output.feed(data[start : start + size])
    output.finish()
    assert output.total_bytes == len(data)
    assert output.kept().startswith("line 0\n")
    assert output.kept().endswith("line 19999\n")
    assert lines[:BURST_LINES] == [f"line {number}" for number in range(BURST_LINES)]
    told = sum(int(line[1:].split()[0]) for line in lines if line.startswith("["))
    assert told + sum(not line.startswith("[") for line in lines) == 20_000


def test_line_without_end_is_cut() -> None:
    output, lines = collect()
    for _ in range(100):
        output.feed(b"x" * 65_536)
    output.feed(b"\nnext\n")
    output.finish()
    assert lines == ["x" * MAX_LINE_BYTES + " [line cut]", "next"]


def test_control_characters_and_bytes_that_are_no_text_do_no_harm() -> None:
    output, lines = collect()
    output.feed(b"\x1b[31mred\x1b[0m \x1b]0;title\x07\x00\x07\x9b \xff\xfe \xe2\x80\xaeturned\ttab\r\n")
    output.finish()
    assert lines == ["red \ufffd\ufffd\ufffd \ufffd\ufffd \ufffdturned\ttab"]
    assert json.loads(json.dumps(output.kept())) == lines[0] + "\n"


def test_secrets_of_the_environment_are_shown_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    outbox, env = Outbox(), {"API_TOKEN": "tr0ub4dor&3"}
    result = run("sh", "-c", 'echo "it is $API_TOKEN"', env=env, outbox=outbox)
    assert result["output"] == "it is ***\n"
    assert lines_of(outbox) == ["it is ***"]
    with pytest.raises(ShellFailed) as caught:
        run("sh", "-c", 'echo "it is $API_TOKEN"; exit 1', env=env)
    assert "it is ***" in str(caught.value)
    assert "tr0ub4dor" not in str(caught.value) + "".join(capfd.readouterr())


def test_guard_shows_neither_arguments_nor_environment_to_others(tmp_path: Path) -> None:
    found = run("sh", "-c", "tr '\\0' ' ' < /proc/$PPID/cmdline; tr '\\0' '\\n' < /proc/$PPID/environ | cut -d= -f1")
    assert "tr" not in found["output"].split()
    assert set(found["output"].splitlines()[1:]) <= {"LD_LIBRARY_PATH", "TMPDIR", "LC_CTYPE"}
    assert signal.Signals.SIGKILL.name not in found["output"]
