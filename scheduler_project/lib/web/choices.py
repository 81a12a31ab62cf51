"""Choosing a row by its name, which a stranger gave it, also among a thousand: options are put together in one go.

A template for each option, as forms and loops have it, would cost more than all else on a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from html import escape
from typing import Any
from uuid import UUID

from django import forms
from django.forms.models import ModelChoiceIterator
from django.forms.utils import flatatt
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from scheduler_project.lib.web.text import harmless

MOST_CHARS = 80


def options(pairs: Iterable[tuple[object, object]], chosen: object) -> SafeString:
    """``<option>`` for each pair of value and label; the one whose value is written like ``chosen`` is selected."""
    now = str(chosen)
    parts = [_option(text, str(label), text == now) for text, label in ((str(value), label) for value, label in pairs)]
    return mark_safe("".join(parts))  # noqa: S308 - escaped in _option


def _option(value: str, label: str, is_chosen: bool) -> str:
    """format_html would cost three times as much."""
    mark = " selected" if is_chosen else ""
    return f'<option value="{escape(value)}"{mark}>{escape(label)}</option>'


def named_options(rows: Iterable[tuple[UUID, str]], chosen: object) -> SafeString:
    """The same for ids with the names of rows."""
    now = str(chosen or "")
    parts = [
        _option(now, harmless(name, MOST_CHARS), True) if now and str(id_) == now else _named(id_, name)
        for id_, name in rows
    ]
    return mark_safe("".join(parts))  # noqa: S308 - escaped in _option


@lru_cache(maxsize=8_192)  # a thousand of them are on every page of jobs
def _named(id_: UUID, name: str) -> str:
    return _option(str(id_), harmless(name, MOST_CHARS), False)


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


class _Names(ModelChoiceIterator):  # type: ignore[type-arg] # of whatever model
    """Ids and names, without the rest of the rows; read once, however often a form asks."""

    def __iter__(self) -> Iterator[tuple[Any, str]]:
        """Each with its name."""
        if self.field.empty_label is not None:
            yield "", str(self.field.empty_label)
        yield from self._rows

    @cached_property
    def _rows(self) -> list[tuple[Any, str]]:
        return [(id_, harmless(name, MOST_CHARS)) for id_, name in self.queryset.values_list("pk", "name")]


class NamedChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg] # of whatever model
    """Shows names with what can not be seen spelled out: an option holds no markup that could set them apart."""

    widget, iterator = PlainSelect, _Names

    def label_from_instance(self, obj: Any) -> str:
        """The name."""
        return harmless(obj.name, MOST_CHARS)
