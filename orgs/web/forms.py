"""What people set in the settings of a project and its organization."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms

from orgs.models import MAX_EGRESS_ENTRIES, MAX_RETENTION_DAYS, ApiKey, Project, Role
from orgs.services import MAX_KEY_NAME_CHARS, MAX_NAME_CHARS, MAX_SLUG_CHARS
from scheduler_project.lib.egress import MAX_HOST_CHARS
from scheduler_project.lib.errors import DomainError
from scheduler_project.lib.web.actions import DomainForm

HOUR_S, DAY_S = 3_600, 86_400
#: Seconds for which the old secret of a rotation stays good.
OVERLAPS = ((0, "at once"), (HOUR_S, "in an hour"), (DAY_S, "in a day"), (7 * DAY_S, "in a week"))


class ProjectForm(DomainForm):
    name = forms.CharField(max_length=MAX_NAME_CHARS)
    retention_days = forms.IntegerField(
        label="Keep ended jobs, days", min_value=1, max_value=MAX_RETENTION_DAYS, required=False
    )


class NewProjectForm(DomainForm):
    name = forms.CharField(max_length=MAX_NAME_CHARS)
    slug = forms.SlugField(
        max_length=MAX_SLUG_CHARS, required=False, help_text="As it stands in addresses. Empty: made from the name."
    )


class MemberForm(DomainForm):
    email = forms.EmailField(label="E-mail", help_text="Of somebody who has an account here.")
    role = forms.ChoiceField(choices=[(r.value, r.label) for r in reversed(Role)], initial=Role.VIEWER)


class KeyForm(DomainForm):
    name = forms.CharField(max_length=MAX_KEY_NAME_CHARS, help_text="Who or what uses it.")
    scope = forms.ChoiceField(choices=ApiKey.Scope.choices, initial=ApiKey.Scope.SUBMIT, label="May")
    days = forms.TypedChoiceField(
        choices=[(0, "never"), (7, "in a week"), (30, "in 30 days"), (90, "in 90 days"), (365, "in a year")],
        coerce=int,
        initial=0,
        label="Expires",
    )

    def settings(self, now: datetime) -> dict[str, Any]:
        """As the service takes them."""
        days = self.cleaned_data["days"]
        expires_at = now + timedelta(days=days) if days else None
        return {"name": self.cleaned_data["name"], "scope": self.cleaned_data["scope"], "expires_at": expires_at}


class OverlapForm(DomainForm):
    overlap_secs = forms.TypedChoiceField(choices=OVERLAPS, coerce=int, initial=DAY_S, label="The old one ends")


def _entries(label: str, help_text: str) -> forms.CharField:
    box = forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "autocapitalize": "off", "class": "mono"})
    most = (MAX_HOST_CHARS + 2) * (MAX_EGRESS_ENTRIES + 1)  # what is much too long is refused before it is read
    return forms.CharField(label=label, help_text=help_text, widget=box, required=False, max_length=most)


class EgressForm(DomainForm):
    """Two lists, an entry a line."""

    egress_allow = _entries("Only to these", "Empty: to all that the installation allows.")
    egress_deny = _entries("Never to these", "Counts more than the list beside it.")

    def lists(self) -> dict[str, list[str]]:
        """The entries; lines without one are left out."""
        return {name: [entry for _, entry in _lines(self.cleaned_data[name])] for name in self.fields}

    def refused(self, error: DomainError) -> None:
        """Each complaint beside its list, with the line that it is about."""
        typed = {name: _lines(self.cleaned_data[name]) for name in self.fields}  # add_error takes values away
        for detail in error.details:
            name, _, place = detail.field.rstrip("]").partition("[")
            line, entry = typed[name][int(place)] if place else (0, "")
            self.add_error(name, f"Line {line}, {entry}: {detail.message}" if place else detail.message)


def _lines(text: str) -> list[tuple[int, str]]:
    """The lines with an entry, with their numbers."""
    return [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]


def seal_of_lists(*lists: Sequence[str]) -> str:
    """The same for lists."""
    return hashlib.sha256(repr([list(one) for one in lists]).encode()).hexdigest()[:16]


def seal_of(project: Project) -> str:
    """Changes with whatever people set; sent along to see whether somebody else was faster."""
    return hashlib.sha256(repr((project.name, project.retention_days)).encode()).hexdigest()[:16]
