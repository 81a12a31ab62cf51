"""Moments that people type, on their own clock."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone

BAD_TIME = "That is no date and time, such as 2026-12-24T18:30, or your clocks skip it."
_MAX_CHARS = 40


def moment_typed(text: str) -> datetime | None:
    """A time on the viewer's clock, as browsers send it; one with an offset is taken as it is. None if it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            wall, moment = moment, moment.replace(tzinfo=timezone.get_current_timezone())
            if timezone.localtime(moment.astimezone(timezone.get_fixed_timezone(0))).replace(tzinfo=None) != wall:
                return None
    except (ValueError, OverflowError):
        return None
    return moment if 1970 <= moment.year < 9999 else None


class MomentField(forms.CharField):
    """A moment on the viewer's clock, or none."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"})

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, max_length=_MAX_CHARS, **options)

    def clean(self, value: Any) -> datetime | None:
        """The moment, aware."""
        text = super().clean(value)
        if not text:
            return None
        moment = moment_typed(text)
        if moment is None:
            raise forms.ValidationError(BAD_TIME)
        return moment
