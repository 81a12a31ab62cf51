"""What a person sets of a schedule. Moments are read and shown on the schedule's own clock."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms

from jobs.cron import CronError, zone_of
from jobs.models import ScheduledJob
from jobs.new_job import LONGEST_TIMEOUT_S, MAX_TYPE_CHARS, SHORTEST_TIMEOUT_S
from queues.models import Queue, RetryPolicy
from scheduler_project.lib.web.actions import DomainForm
from scheduler_project.lib.web.choices import NamedChoiceField

_MOST_SECS, _MOST_FIRES = 366 * 86_400, 1_000_000_000
_CLOCK = "%Y-%m-%dT%H:%M:%S"
MOMENTS = ("run_once_at", "starts_at", "ends_at")
_PLAIN = (
    "name", "cron_expression", "timezone", "gap_policy", "repeat_policy", "misfire_policy", "misfire_grace_secs",
    "misfire_cap", "overlap_policy", "jitter_secs", "max_fires", "job_type", "timeout_s",
)  # fmt: skip


class WallTime(forms.CharField):
    """A date and time without a zone, as browsers send it."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"})

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, max_length=40, **options)

    def clean(self, value: Any) -> datetime | None:
        text = super().clean(value)
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise forms.ValidationError("is no date and time, such as 2026-12-24T18:30") from None
        if moment.tzinfo is not None or not 1970 <= moment.year < 9999:
            raise forms.ValidationError("must be a time from 1970 to 9998, without a zone")
        return moment


class ScheduleForm(DomainForm):
    field_of = {"retry_policy_id": "retry_policy"}

    name = forms.CharField(max_length=200)
    cron_expression = forms.CharField(
        label="Expression", max_length=120, required=False,
        help_text="Minute, hour, day of month, month, day of week; or @daily. Empty for a single moment.",
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false", "placeholder": "30 2 * * *"}),
    )  # fmt: skip
    run_once_at = WallTime(label="or once, at", help_text="On the schedule's clock.")
    timezone = forms.CharField(
        label="Time zone", max_length=64, initial="UTC", help_text="Whose clock the expression follows.",
        widget=forms.TextInput(attrs={"list": "zones", "spellcheck": "false", "autocomplete": "off"}),
    )  # fmt: skip
    queue = NamedChoiceField(Queue.objects.none(), empty_label=None)
    job_type = forms.CharField(
        label="Job type", max_length=MAX_TYPE_CHARS,
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false"}),
    )  # fmt: skip
    retry_policy = NamedChoiceField(
        RetryPolicy.objects.none(), label="Retry policy", required=False, empty_label="The queue's"
    )
    payload_template = forms.CharField(
        label="Payload, JSON", required=False, initial="{}", strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "class": "mono", "spellcheck": "false"}),
    )  # fmt: skip
    overlap_policy = forms.ChoiceField(
        label="While its last job still runs", choices=ScheduledJob.OverlapPolicy, initial="allow"
    )
    misfire_policy = forms.ChoiceField(
        label="Times nobody could fire", choices=ScheduledJob.MisfirePolicy, initial="run_once"
    )
    misfire_grace_secs = forms.IntegerField(
        label="Missed after, seconds", min_value=0, max_value=_MOST_SECS, initial=60
    )
    misfire_cap = forms.IntegerField(label="Cap of “run all”", min_value=1, max_value=1_000, initial=100)
    gap_policy = forms.ChoiceField(label="A time the clocks skip", choices=ScheduledJob.GapPolicy, initial="run_after")
    repeat_policy = forms.ChoiceField(
        label="A time that comes twice", choices=ScheduledJob.RepeatPolicy, initial="first"
    )
    jitter_secs = forms.IntegerField(
        label="Jitter, seconds",
        min_value=0,
        max_value=86_400,
        initial=0,
        help_text="Each job is due up to so much later.",
    )
    starts_at = WallTime(label="Not before")
    ends_at = WallTime(label="Not after")
    max_fires = forms.IntegerField(
        label="At most, times", min_value=1, max_value=_MOST_FIRES, required=False, help_text="Empty: without end."
    )

    timeout_s = forms.FloatField(
        label="Timeout, seconds", min_value=SHORTEST_TIMEOUT_S, max_value=LONGEST_TIMEOUT_S, required=False,
        help_text="Of each attempt of its jobs. Empty: the handler's own.",
    )  # fmt: skip

    def __init__(self, project_id: Any, *args: Any, schedule: ScheduledJob | None = None, **kwargs: Any) -> None:
        if schedule is not None:
            kwargs.setdefault("initial", values_of(schedule))
        super().__init__(*args, **kwargs)
        queues, policies = self._choices("queue"), self._choices("retry_policy")
        queues.queryset = Queue.objects.filter(project=project_id, deleted_at=None).order_by("name")
        policies.queryset = RetryPolicy.objects.filter(project=project_id).order_by("name")
        self._schedule = schedule

    def _choices(self, name: str) -> Any:
        return self.fields[name]

    def clean_payload_template(self) -> Any:
        text = self.cleaned_data["payload_template"]
        try:
            return json.loads(text) if text.strip() else {}
        except RecursionError:
            raise forms.ValidationError("is nested too deeply") from None
        except ValueError as error:
            raise forms.ValidationError(f"is not JSON: {error}") from None

    def clean(self) -> dict[str, Any]:
        found = self.cleaned_data
        try:
            zone = zone_of(found.get("timezone", ""))
        except CronError as error:
            if "timezone" in found:
                self.add_error("timezone", str(error))
            return found
        for name in MOMENTS:
            if found.get(name) is not None:
                self._place(name, zone)
        return found

    def _place(self, name: str, zone: ZoneInfo) -> None:
        """Put a moment on the schedule's clock. Of a time that comes twice it is the first, or the one it was."""
        wall = self.cleaned_data[name]
        stored = getattr(self._schedule, name, None)
        if stored is not None and stored.astimezone(zone).replace(tzinfo=None, microsecond=0) == wall:
            self.cleaned_data[name] = stored
            return
        moment = wall.replace(tzinfo=zone).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None) != wall:
            self.add_error(name, f"The clocks of {zone.key} skip this time.")
        self.cleaned_data[name] = moment

    def settings(self) -> dict[str, Any]:
        """All settings, as the service takes them; without the queue."""
        policy = self.cleaned_data["retry_policy"]
        found = {name: self.cleaned_data[name] for name in (*_PLAIN, *MOMENTS, "payload_template")}
        return {**found, "retry_policy_id": policy.pk if policy else None}

    def changes(self, schedule: ScheduledJob) -> dict[str, Any]:
        """Only what differs: a setting that is merely sent again must not move the next run."""
        return {name: value for name, value in self.settings().items() if value != getattr(schedule, name)}


def values_of(schedule: ScheduledJob) -> dict[str, Any]:
    """The form's first values."""
    found = {name: getattr(schedule, name) for name in _PLAIN}
    zone = _zone_or_utc(schedule.timezone)
    for name in MOMENTS:
        moment = getattr(schedule, name)
        found[name] = moment.astimezone(zone).strftime(_CLOCK) if moment else None
    payload = json.dumps(schedule.payload_template, indent=2, ensure_ascii=False)
    return {**found, "queue": schedule.queue_id, "retry_policy": schedule.retry_policy_id, "payload_template": payload}


def seal_of(schedule: ScheduledJob) -> str:
    """Changes with whatever people set; sent along to see whether somebody else was faster."""
    return hashlib.sha256(repr(sorted(values_of(schedule).items())).encode()).hexdigest()[:16]


def _zone_or_utc(name: str) -> ZoneInfo:
    try:
        return zone_of(name)
    except CronError:
        return ZoneInfo("UTC")
