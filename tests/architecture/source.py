"""The product's source, read once: files, syntax trees and statements."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("scheduler_project", "accounts", "orgs", "queues", "dlq", "jobs")


@cache
def python_files() -> list[Path]:
    """The product's modules, migrations apart."""
    found = [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]
    return [path for path in found if "migrations" not in path.parts]


@cache
def sql_files() -> list[Path]:
    """The product's statements."""
    return [path for app in APPS for path in sorted((ROOT / app).rglob("*.sql"))]


def name_of(path: Path) -> str:
    """A path as it is written in rules."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def nodes(path: Path, kind: type[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a kind in a module."""
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, kind))


def chain_of(node: ast.AST) -> list[str]:
    """``Job.objects.filter(x).update(y)`` as Job, objects, filter, update; empty if it does not begin with a name."""
    names: list[str] = []
    while True:
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        elif isinstance(node, ast.Name):
            return [node.id, *names]
        else:
            return []


def body_of(path: Path) -> str:
    """A statement without its comments, in one line of single blanks."""
    text = re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8"))
    return re.sub(r"\s+", " ", text).strip().lower()
