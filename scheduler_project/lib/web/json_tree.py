"""A JSON value as nested ``<details>``: big numbers exact, secrets masked, and never more than a page can bear."""

from __future__ import annotations

import json
import re
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from scheduler_project.lib.web.text import harmless

MAX_BYTES, MAX_NODES, MAX_DEPTH, MAX_TEXT, OPEN_DEPTH = 16_384, 200, 12, 2_000, 2
MASK = "••••••"
SECRET = re.compile(r"pass(word|wd)?|secret|token|api_?key|authorization|credential|cookie|private_?key", re.IGNORECASE)


def json_tree(value: Any, is_secret: re.Pattern[str] = SECRET) -> SafeString:
    """The value as a tree; what is too large is shown as the beginning of its text."""
    text = json.dumps(masked(value, is_secret), ensure_ascii=False, indent=2)
    if len(text) > MAX_BYTES:
        note = f"Shown are the first {MAX_BYTES // 1024} KiB of {len(text) // 1024:,} KiB."
        return format_html(
            '<pre class="code" dir="ltr"><bdi>{}</bdi></pre><p class="note">{}</p>', harmless(text, MAX_BYTES), note
        )
    return format_html('<div class="json" dir="ltr">{}</div>', _node(masked(value, is_secret), 0, [MAX_NODES]))


def masked(value: Any, is_secret: re.Pattern[str] = SECRET, depth: int = 0) -> Any:
    """The value with what stands under names of secrets replaced."""
    if depth > 50:
        return "…"
    if isinstance(value, dict):
        return {
            str(k): MASK if is_secret.search(str(k)) and v is not None else masked(v, is_secret, depth + 1)
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [masked(item, is_secret, depth + 1) for item in value]
    return value


def _node(value: Any, depth: int, left: list[int]) -> SafeString:
    left[0] -= 1
    if not isinstance(value, dict | list) or not value:
        return _leaf(value)
    if depth >= MAX_DEPTH or left[0] <= 0:
        return format_html('<span class="json-more">… {} more</span>', str(len(value)))
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    room = max(1, left[0])
    rows = format_html_join(
        "",
        "<li><b><bdi>{}</bdi></b> {}</li>",
        ((harmless(key, 200), _node(item, depth + 1, left)) for key, item in items[:room]),
    )
    more = format_html("<li>… {} more</li>", str(len(items) - room)) if len(items) > room else ""
    kind = f"{{{len(items)}}}" if isinstance(value, dict) else f"[{len(items)}]"
    is_open = SafeString(" open") if depth < OPEN_DEPTH else ""
    return format_html("<details{}><summary>{}</summary><ul>{}{}</ul></details>", is_open, kind, rows, more)


def _leaf(value: Any) -> SafeString:
    kind = "text" if isinstance(value, str) else "word" if value is None or isinstance(value, bool) else "number"
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else f'"{value}"'
    return format_html('<bdi class="json-{}">{}</bdi>', kind, harmless(text, MAX_TEXT))
