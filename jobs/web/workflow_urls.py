"""Paths of workflows, below an organization and a project."""

from django.urls import path

from jobs.web import workflows

urlpatterns = [
    path("workflows", workflows.workflows, name="workflows"),
    path("workflows/<uuid:job_id>", workflows.workflow, name="workflow"),
    path("workflows/<uuid:job_id>/cancel", workflows.cancel, name="workflow_cancel"),
    path("workflows/<uuid:job_id>/retry", workflows.retry, name="workflow_retry"),
]
