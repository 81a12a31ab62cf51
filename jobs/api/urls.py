"""Paths under /api/."""

from django.urls import path

from jobs.api import executions, jobs, workers

app_name = "jobs_api"
urlpatterns = [
    path("jobs", jobs.JobsView.as_view(), name="jobs"),
    path("jobs/<uuid:job_id>", jobs.JobView.as_view(), name="job"),
    path("jobs/<uuid:job_id>/cancel", jobs.CancelView.as_view(), name="cancel"),
    path("jobs/<uuid:job_id>/executions", executions.ExecutionsView.as_view(), name="executions"),
    path("jobs/<uuid:job_id>/logs", executions.LogsView.as_view(), name="logs"),
    path("workers", workers.WorkersView.as_view(), name="workers"),
]
