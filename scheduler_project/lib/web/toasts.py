"""What an action has to say, shown once on the next page; what can be undone says how."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import HttpRequest


def say(request: HttpRequest, text: str, *, undo: str = "", **fields: str) -> None:
    """A toast. ``undo`` is the path of our own that a POST with ``fields`` takes it back by."""
    more = json.dumps({"undo": undo, "fields": fields}) if undo else ""
    messages.success(request, text, extra_tags=more)


def say_and_link(request: HttpRequest, text: str, path: str, label: str) -> None:
    """A toast that leads to what came of it; without a path it only says so."""
    messages.success(request, text, extra_tags=json.dumps({"link": path, "label": label}) if path else "")


def complain(request: HttpRequest, text: str) -> None:
    """A toast about what was not done."""
    messages.error(request, text)
