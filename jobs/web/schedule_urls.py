"""Paths of schedules, below an organization and a project."""

from django.urls import path

from jobs.web import schedule_actions as actions
from jobs.web import schedule_editor as editor
from jobs.web import schedules

_ONE = "scheduled-jobs/<uuid:schedule_id>"
urlpatterns = [
    path("scheduled-jobs", schedules.schedules, name="scheduled_jobs"),
    path("scheduled-jobs/new", editor.new, name="scheduled_job_new"),
    path("scheduled-jobs/preview", editor.preview, name="scheduled_job_preview"),
    path(_ONE, schedules.schedule, name="scheduled_job"),
    path(f"{_ONE}/edit", editor.edit, name="scheduled_job_edit"),
    path(f"{_ONE}/activate", actions.activate, name="scheduled_job_activate"),
    path(f"{_ONE}/deactivate", actions.deactivate, name="scheduled_job_deactivate"),
    path(f"{_ONE}/pause", actions.pause, name="scheduled_job_pause"),
    path(f"{_ONE}/resume", actions.resume, name="scheduled_job_resume"),
    path(f"{_ONE}/trigger", actions.trigger, name="scheduled_job_trigger"),
    path(f"{_ONE}/backfill", actions.backfill, name="scheduled_job_backfill"),
    path(f"{_ONE}/delete", actions.delete, name="scheduled_job_delete"),
]
