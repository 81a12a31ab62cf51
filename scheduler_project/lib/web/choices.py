"""Choosing a row by its name, which a stranger gave it, also among a thousand: options are put together in one go.

A template for each option, as forms and loops have it, would cost more than all else on a page.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from scheduler_project.lib.web.text import harmless

MOST_CHARS = 80


def options(pairs: Iterable[tuple[object, object]], chosen: object) -> SafeString:
    """``<option>`` for each pair of value and label; the one whose value is written like ``chosen`` is selected."""
    now = str(chosen)
    rows = ((value, " selected" if str(value) == now else "", label) for value, label in pairs)
    return format_html_join("", '<option value="{}"{}>{}</option>', rows)


def named_options(rows: Iterable[Any], chosen: object) -> SafeString:
    """The same for rows with a name."""
    return options(((row.pk, harmless(row.name, MOST_CHARS)) for row in rows), chosen)


@lru_cache(maxsize=32)
def zone_options(zones: tuple[str, ...], chosen: str) -> SafeString:
    """The same for time zones: always these, on every page."""
    return options(((name, name) for name in zones), chosen)


class PlainSelect(forms.Select):
    """A select without groups."""

    def render(self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None) -> SafeString:
        """The element."""
        more = flatatt(self.build_attrs(self.attrs, attrs))
        [chosen] = self.format_value(value) or [""]
        return format_html('<select name="{}"{}>{}</select>', name, more, options(self.choices, chosen))


class NamedChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg] # of whatever model
    """Shows names with what can not be seen spelled out: an option holds no markup that could set them apart."""

    widget = PlainSelect

    def label_from_instance(self, obj: Any) -> str:
        """The name."""
        return harmless(obj.name, MOST_CHARS)
