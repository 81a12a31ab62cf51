"""docs/configuration.md is what the code reads: nothing more, nothing less, with its defaults and bounds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler_project import env
from scheduler_project.configuration import page

ROOT = Path(__file__).parents[2]
COMMITTED = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
NAME = re.compile(r"\bAPP_[A-Z_]*[A-Z]\b")
#: Not the product's: the tests' own, Django's option, names made up for examples.
OTHERS = {"APP_TEST_POOLER", "APP_DIRS"}


def test_the_page_is_that_of_this_code():
    unset = {k: v for k, v in os.environ.items() if not k.startswith(("APP_", "PYTEST_"))}
    program = [sys.executable, str(ROOT / "manage.py"), "configuration"]
    made = subprocess.run(program, env=unset, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert made == COMMITTED, "run, with no setting set: manage.py configuration > docs/configuration.md"


def test_every_setting_that_is_named_anywhere_is_on_the_page():
    places = [ROOT / "docker-compose.yml", ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for folder in ("deploy", "scheduler_project", "jobs", "orgs"):
        places += [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".yml", ".yaml", ".env"}]
    named = {name for path in places for name in NAME.findall(path.read_text(encoding="utf-8"))}

    assert named - OTHERS - set(NAME.findall(COMMITTED)) == set()


@pytest.mark.parametrize(("name", "is_read"), [("NEW_ONE", True), ("LISTEN", False)])
def test_a_setting_that_is_read_and_not_described_or_the_other_way_round_is_named(name: str, is_read: bool):
    read = dict(env.READ)
    if is_read:
        read[name] = env.Variable("", "any text")
    else:
        del read[name]

    with pytest.raises(LookupError, match=name):
        page(read)


def test_what_is_read_is_remembered_with_its_default_and_bounds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(env, "READ", {})
    monkeypatch.setenv("APP_SEATS", "7")
    env.integer("SEATS", 5, at_least=1, at_most=10)
    env.boolean("LOUD", default=False)
    env.parsed("RULES", env.text("RULES", "a"), str, "rules are needed")

    expected = {
        "SEATS": env.Variable("5", "a whole number from 1 to 10 is needed"),
        "LOUD": env.Variable("false", "true or false is needed"),
        "RULES": env.Variable("a", "rules are needed"),
    }
    assert expected == env.READ
