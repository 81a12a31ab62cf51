"""How carefully many jobs are queued again: asked for on the page that confirms it."""

from __future__ import annotations

from typing import Any

from django import forms

_PERS = (("minute", "minute"), ("second", "second"), ("hour", "hour"))


class CareForm(forms.Form):
    """All of it may stay empty, so it is sound before it was shown too."""

    canary = forms.IntegerField(
        label="Canary, jobs",
        required=False,
        help_text="So many first; the rest waits until they have completed. It stops if one of them fails again.",
    )
    pace = forms.IntegerField(label="Pace, jobs", required=False, help_text="No faster than that.")
    pace_per = forms.ChoiceField(label="in each", choices=_PERS, required=False)

    def __init__(self, given: Any, *, most_canary: int, most_pace: int) -> None:
        super().__init__(given)
        self._most = {"canary": most_canary, "pace": most_pace}
        for name, most in self._most.items():
            self.fields[name].widget.attrs |= {"min": 1, "max": most}

    def clean(self) -> dict[str, Any]:
        """Within their bounds."""
        given = super().clean() or self.cleaned_data
        for name, most in self._most.items():
            value = given.get(name)
            if value is not None and not 1 <= value <= most:
                self.add_error(name, f"must be from 1 to {most:,}")
        return given

    def care(self) -> dict[str, Any]:
        """What was asked for, by the names that operations have for it; nothing if it can not be read."""
        if not self.is_valid():
            return {}
        given = self.cleaned_data
        return {"canary": given["canary"], "pace": given["pace"], "pace_per": given["pace_per"] or "minute"}
