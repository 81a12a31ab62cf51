"""The statements of the orgs wing, loaded once. Only their keepers may import this room (pyproject.toml, "vault")."""

from pathlib import Path

from scheduler_project.lib.statements import load

_HERE = Path(__file__).parent

FIND_KEY = load(_HERE, "find_key")
TAKE_TOKENS = load(_HERE, "take_tokens")
