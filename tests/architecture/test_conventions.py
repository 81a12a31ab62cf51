"""The rules of the house that imports can not show, by walking the syntax trees."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, chain_of, name_of, nodes, python_files, tree_of

LIFECYCLE = "jobs/lifecycle/"
#: Files that may do what a rule forbids, each with the reason.
MAY_WRITE_STATUS = {"jobs/services/sample_writer.py": "sample data has a past that never happened"}
MODELS_OF_HOT_TABLES = {"job", "row", "execution", "worker", "letter", "dead_letter"}
WRITES = {
    "update",
    "create",
    "bulk_create",
    "bulk_update",
    "get_or_create",
    "update_or_create",
    "delete",
    "raw",
    "extra",
}
HARD_LIMIT_LINES = 400


def calls(path: Path) -> list[ast.Call]:
    return [node for node in nodes(path, ast.Call) if isinstance(node, ast.Call)]


def keywords(call: ast.Call) -> set[str]:
    return {keyword.arg for keyword in call.keywords if keyword.arg}


def test_the_raw_writes_of_the_life_cycle_are_used_only_there() -> None:
    users = {
        name_of(path)
        for path in python_files()
        for node in nodes(path, ast.Attribute)
        if isinstance(node, ast.Attribute) and node.attr == "claims"
    }

    assert {user for user in users if not user.startswith(LIFECYCLE)} == set()
    assert users, "the rule looks for something that no longer exists"


def test_no_other_file_writes_the_status_of_a_job() -> None:
    offenders = []
    for path in python_files():
        if name_of(path).startswith(LIFECYCLE) or name_of(path) in {"jobs/managers.py", *MAY_WRITE_STATUS}:
            continue
        for call in calls(path):
            chain = chain_of(call)
            is_write = chain[:2] == ["Job", "objects"] and chain[-1] in WRITES
            if "status" in keywords(call) and (is_write or chain == ["Job"]):
                offenders.append(f"{name_of(path)}:{call.lineno}")

    assert offenders == []


def test_what_the_life_cycle_writes_through_the_orm_is_never_the_status_or_the_lease() -> None:
    offenders = [
        f"{name_of(path)}:{call.lineno}"
        for path in python_files()
        if name_of(path).startswith(LIFECYCLE)
        for call in calls(path)
        if chain_of(call)[:2] == ["Job", "objects"] and chain_of(call)[-1] in WRITES
        and keywords(call) & {"status", "lease_token", "lease_expires_at", "locked_by", "attempt_count"}
    ]  # fmt: skip

    assert offenders == []


def test_saving_a_row_of_a_hot_table_names_its_fields() -> None:
    offenders = []
    for path in python_files():
        for call in calls(path):
            chain = chain_of(call)
            is_save = len(chain) == 2 and chain[1] == "save" and chain[0] in MODELS_OF_HOT_TABLES
            if is_save and not keywords(call) & {"update_fields", "force_insert"}:
                offenders.append(f"{name_of(path)}:{call.lineno}")

    assert offenders == []


def test_boolean_parameters_of_public_functions_are_named_by_the_caller() -> None:
    offenders = [
        f"{name_of(path)}:{node.lineno} {node.name}({argument.arg})"
        for path in python_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        for argument in node.args.args
        if argument.annotation is not None and ast.unparse(argument.annotation) in {"bool", "bool | None"}
    ]

    assert offenders == []


def test_whoever_catches_everything_stands_at_a_boundary_and_says_so() -> None:
    offenders = []
    for path in python_files():
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in nodes(path, ast.ExceptHandler):
            assert isinstance(node, ast.ExceptHandler)
            caught = ast.unparse(node.type) if node.type else "everything"
            if caught in {"Exception", "BaseException", "everything"}:
                around = "\n".join(lines[max(0, node.lineno - 2) : node.lineno + 1])
                if "boundary:" not in around:
                    offenders.append(f"{name_of(path)}:{node.lineno}")

    assert offenders == []


def test_cursors_are_opened_in_the_cellar_only() -> None:
    users = {
        name_of(path)
        for path in python_files()
        for call in calls(path)
        if chain_of(call)[-2:] == ["connection", "cursor"] or chain_of(call)[-1:] == ["raw"]
    }

    assert {user for user in users if not user.startswith("scheduler_project/lib/")} == set()


@pytest.mark.parametrize("path", python_files(), ids=name_of)
def test_a_file_is_short_enough_to_be_read_at_once(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= HARD_LIMIT_LINES


def text_files() -> list[Path]:
    """What is handed over: source, documents and settings."""
    kinds = {".py", ".sql", ".md", ".toml", ".html", ".css", ".js", ".yml", ".yaml", ".json", ".txt", ".in", ""}
    skipped = {".git", ".venv", ".venv-peers", ".tools", "build", "__pycache__", ".embedded-postgres"}
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and path.suffix in kinds
        and not any(part in skipped or part.endswith("_cache") or part == ".hypothesis" for part in path.parts)
    ]


def test_nothing_depends_on_the_place_it_was_written_in() -> None:
    outside = re.compile(r"\.\./shared|/shared/[A-Z]|(?<![\w.])/(?:home|work|Users)/\w+")

    offenders = [
        f"{name_of(path)}: {found.group()}"
        for path in text_files()
        if path != Path(__file__) and (found := outside.search(path.read_text(encoding="utf-8", errors="replace")))
    ]

    assert offenders == []


def test_a_test_that_sleeps_says_why() -> None:
    """Tests wait for conditions; what sleeps all the same gives its reason in the same line."""
    makes_time_pass = {"tests/waiting.py", "tests/work.py", "tests/isolated_work.py", "tests/unit/test_supervisor.py"}
    offenders = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for call in calls(path):
            is_sleep = chain_of(call) == ["time", "sleep"] and name_of(path) not in makes_time_pass
            if is_sleep and "#" not in lines[call.lineno - 1]:
                offenders.append(f"{name_of(path)}:{call.lineno}")

    assert offenders == []
