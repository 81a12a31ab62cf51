"""Every statement says what it does, is used, and is fenced if it touches an attempt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, body_of, name_of, python_files, sql_files

each_statement = pytest.mark.parametrize("path", sql_files(), ids=name_of)
#: What a statement says that ends, extends or logs an attempt.
TOUCHES_AN_ATTEMPT = re.compile(
    r"insert into job_(?:executions|logs)\b|set [^;]*\b(?:lease_expires_at|lease_token|progress_percent)\s*="
)
#: Statements that say so and need no fence, each with the reason.
UNFENCED = {
    "jobs/sql/retire_workers.sql": "only hastens the end of a lease; what ends the attempt is fenced",
    "jobs/sql/requeue.sql": "clears the progress of a job that has ended: there is no attempt",
}


def head_of(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[: next(i for i, line in enumerate(lines) if not line.startswith("--"))]


def head_entry(path: Path, word: str) -> str | None:
    return next((line for line in head_of(path) if line.startswith(f"-- {word} ")), None)


@each_statement
def test_the_head_names_the_file_and_says_what_it_is_for(path: Path) -> None:
    assert re.match(rf"-- {re.escape(path.name)}: \S.{{10,}}", head_of(path)[0])


@each_statement
@pytest.mark.parametrize("word", ["params", "returns", "locks", "index"])
def test_the_head_tells_parameters_answer_locks_and_index(path: Path, word: str) -> None:
    entry = head_entry(path, word)

    assert entry is not None
    assert entry.removeprefix(f"-- {word}").strip()


@each_statement
def test_the_head_names_every_parameter(path: Path) -> None:
    head = "\n".join(head_of(path))
    if "one array per column" in head:
        return

    for parameter in set(re.findall(r"%\((\w+)\)s", path.read_text(encoding="utf-8"))):
        assert re.search(rf"\b{parameter}\b", head), f"{parameter} is not in the head"


@each_statement
def test_no_comment_holds_a_percent_sign_which_the_driver_would_read(path: Path) -> None:
    comments = re.findall(r"--[^\n]*|/\*.*?\*/", path.read_text(encoding="utf-8"), re.DOTALL)

    assert [comment for comment in comments if "%" in comment] == []


@each_statement
def test_it_is_one_statement_in_lower_case(path: Path) -> None:
    body = re.sub(r"'[^']*'", "''", re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8")))
    if "$body$" not in body:
        assert body.strip().endswith(";")
        assert body.count(";") == 1
    assert re.findall(r"\b(?:SELECT|UPDATE|INSERT|DELETE|FROM|WHERE|AND)\b", body) == []


@each_statement
def test_what_ends_extends_or_logs_an_attempt_is_fenced_by_the_lease_token(path: Path) -> None:
    body = body_of(path)

    if TOUCHES_AN_ATTEMPT.search(body) and name_of(path) not in UNFENCED:
        assert "lease_token" in body


def test_the_rule_of_the_fence_sees_the_statements_it_is_made_for() -> None:
    touching = {path.stem for path in sql_files() if TOUCHES_AN_ATTEMPT.search(body_of(path))}

    assert {"settle", "extend_leases", "extend_leases_of_worker", "progress", "log_lines", "claim"} <= touching
    assert "cancel" not in touching
    assert all((ROOT / name).exists() for name in UNFENCED)


@each_statement
def test_it_is_loaded_once_and_used(path: Path) -> None:
    loader = (path.parent / "__init__.py").read_text(encoding="utf-8")
    constant = path.stem.upper()

    assert loader.count(f'{constant} = load(_HERE, "{path.stem}")') == 1
    users = [p for p in python_files() if re.search(rf"\bsql\.{constant}\b", p.read_text(encoding="utf-8"))]
    assert users, f"nobody uses sql.{constant}"


@pytest.mark.parametrize("folder", sorted({path.parent for path in sql_files()}), ids=name_of)
def test_nothing_is_loaded_that_is_not_there(folder: Path) -> None:
    loaded = set(re.findall(r'load\(_HERE, "(\w+)"\)', (folder / "__init__.py").read_text(encoding="utf-8")))

    assert loaded == {path.stem for path in folder.glob("*.sql")}


@each_statement
def test_rows_of_jobs_are_locked_in_the_order_of_their_ids_or_not_waited_for(path: Path) -> None:
    """Two statements that lock several jobs in different orders would wait for each other in a circle."""
    for lock in re.finditer(r"from jobs\b(?:(?!from ).)*?for (?:no key )?update( skip locked)?", body_of(path)):
        assert lock.group(1) or "order by" in lock.group(), lock.group()
