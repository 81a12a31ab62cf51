"""Submitting a job by hand, also as a changed copy of another."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from jobs.handlers.registry import known_types
from jobs.models import Job
from jobs.new_job import LONGEST_DELAY_S, LONGEST_TIMEOUT_S, MAX_KEY_CHARS, MAX_TYPE_CHARS, SHORTEST_TIMEOUT_S, NewJob
from jobs.services.submission import submit
from orgs.models import Role
from orgs.web.access import MemberRequest, member_view, path_in
from queues.models import MAX_ATTEMPTS, PRIORITY_BOUND, Queue, RetryPolicy
from scheduler_project.lib.errors import DomainError
from scheduler_project.lib.sealed_json import MASK, masked
from scheduler_project.lib.web.choices import NamedChoiceField
from scheduler_project.lib.web.moments import MomentField
from scheduler_project.lib.web.pages import back_to
from scheduler_project.lib.web.paging import id_or_none
from scheduler_project.lib.web.toasts import say

_FIELD_OF = {"retry_policy_id": "retry_policy", "payload": "payload"}
#: What every job has; the rest is for a few.
_FIRST = ("queue", "job_type", "payload")


class JobForm(forms.Form):
    queue = NamedChoiceField(Queue.objects.none(), empty_label=None)
    job_type = forms.CharField(max_length=MAX_TYPE_CHARS, widget=forms.TextInput(attrs={"list": "types"}))
    payload = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false"}), initial="{}", required=False, help_text="JSON"
    )
    delay_s = forms.FloatField(label="Delay, seconds", min_value=0, max_value=LONGEST_DELAY_S, initial=0)
    priority = forms.IntegerField(min_value=-PRIORITY_BOUND, max_value=PRIORITY_BOUND, initial=0)
    max_attempts = forms.IntegerField(
        min_value=1, max_value=MAX_ATTEMPTS, required=False, help_text="Else the policy's"
    )
    retry_policy = NamedChoiceField(RetryPolicy.objects.none(), required=False, empty_label="The queue's")
    timeout_s = forms.FloatField(
        label="Timeout, seconds", min_value=SHORTEST_TIMEOUT_S, max_value=LONGEST_TIMEOUT_S, required=False
    )
    start_deadline = MomentField(label="Begin by", help_text="Else it is cancelled. On your clock.")
    deadline = MomentField(label="Deadline", help_text="No attempt begins after it.")
    idempotency_key = forms.CharField(max_length=MAX_KEY_CHARS, required=False)
    concurrency_key = forms.CharField(max_length=MAX_KEY_CHARS, required=False)

    def __init__(self, project_id: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        queues: Any = self.fields["queue"]
        queues.queryset = Queue.objects.filter(project=project_id, deleted_at=None).order_by("name")
        policies: Any = self.fields["retry_policy"]
        policies.queryset = RetryPolicy.objects.filter(project=project_id).order_by("name")

    def clean_payload(self) -> Any:
        """The value the text stands for, numbers of any size exact."""
        if MASK in self.cleaned_data["payload"]:
            raise forms.ValidationError(f"Secret values are not copied: type them in the place of {MASK}.")
        try:
            return json.loads(self.cleaned_data["payload"] or "{}")
        except json.JSONDecodeError as error:
            raise forms.ValidationError(
                f"This is no JSON: {error.msg} in line {error.lineno}, column {error.colno}."
            ) from None
        except (ValueError, RecursionError):
            raise forms.ValidationError(
                "This JSON can not be read: it is nested too deep or a number is too long."
            ) from None

    def job(self) -> NewJob:
        """What was typed, as it is submitted."""
        given = self.cleaned_data
        return NewJob(
            job_type=given["job_type"],
            payload=given["payload"],
            delay_s=given["delay_s"],
            priority=given["priority"],
            max_attempts=given["max_attempts"],
            retry_policy_id=given["retry_policy"].pk if given["retry_policy"] else None,
            timeout_s=given["timeout_s"],
            start_deadline=given["start_deadline"],
            deadline=given["deadline"],
            idempotency_key=given["idempotency_key"] or None,
            concurrency_key=given["concurrency_key"] or None,
        )


@require_http_methods(["GET", "HEAD", "POST"])
@member_view(needs=Role.MEMBER)
def new_job(request: MemberRequest) -> HttpResponse:
    form = JobForm(request.project.pk, request.POST or None, initial=_copied(request))
    if request.method == "POST" and form.is_valid():
        try:
            receipt = submit(form.cleaned_data["queue"], form.job())
        except DomainError as error:
            for detail in error.details:
                name = detail.field.partition(".")[0]
                name = _FIELD_OF.get(name, name)
                form.add_error(name if name in form.fields else None, f"{detail.field}: {detail.message}")
            if not error.details:
                form.add_error(None, error.message)
        else:
            say(request, "The job is submitted." if receipt.is_new else "This key stands for this job already.")
            return back_to(path_in(request, "job", receipt.id))
    fields = [field for field in form if field.name not in _FIRST]
    context = {
        "section": "jobs",
        "form": form,
        "first": [form["queue"], form["job_type"]],
        "wide": [form["payload"]],
        "fields": fields,
        "is_open": "from" in request.GET or any(field.errors for field in fields),
        "types": [name for name in known_types()[0] if name != "django.task"],
    }
    return render(request, "jobs/new.html", context, status=422 if form.errors else 200)


def _copied(request: MemberRequest) -> dict[str, Any]:
    """The values of the job that is to be run again with changes."""
    source = id_or_none(request.GET.get("from", ""))
    job = None if source is None else Job.objects.in_projects([request.project.pk]).filter(pk=source).first()
    if job is None:
        return {"queue": id_or_none(request.GET.get("queue", ""))}
    return {
        "queue": job.queue_id,
        "job_type": job.job_type,
        "payload": json.dumps(masked(job.payload), ensure_ascii=False, indent=2),
        "delay_s": 0,
        "priority": job.priority,
        "max_attempts": job.max_attempts_override,
        "retry_policy": job.retry_policy_id,
        "timeout_s": job.timeout_s,
        "concurrency_key": job.concurrency_key,
    }
