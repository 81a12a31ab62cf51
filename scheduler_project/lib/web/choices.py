"""A row to choose by its name, which a stranger gave it."""

from __future__ import annotations

from typing import Any

from django import forms

from scheduler_project.lib.web.text import harmless

MOST_CHARS = 80


class NamedChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg] # of whatever model
    """Shows names with what can not be seen spelled out: an option holds no markup that could set them apart."""

    def label_from_instance(self, obj: Any) -> str:
        """The name."""
        return harmless(obj.name, MOST_CHARS)
