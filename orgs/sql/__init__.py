"""The statements of the orgs wing, loaded once. Only ``orgs.token_bucket`` may import this room."""

from pathlib import Path

from scheduler_project.lib.statements import load

_HERE = Path(__file__).parent

TAKE_TOKENS = load(_HERE, "take_tokens")
