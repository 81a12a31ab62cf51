"""Paths of the engine's pages, below an organization and a project."""

from django.urls import path

from jobs.web import dashboard, entry, export, job, jobs, new

urlpatterns = [
    path("", dashboard.dashboard, name="dashboard"),
    path("jump", entry.jump, name="jump"),
    path("first-job", entry.first_arrival, name="first_arrival"),
    path("jobs", jobs.jobs, name="jobs"),
    path("jobs/export", export.export, name="jobs_export"),
    path("jobs/act", jobs.act, name="jobs_act"),
    path("jobs/new", new.new_job, name="job_new"),
    path("jobs/<uuid:job_id>", job.job, name="job"),
    path("jobs/<uuid:job_id>/cancel", job.cancel, name="job_cancel"),
    path("jobs/<uuid:job_id>/retry", job.retry, name="job_retry"),
    path("jobs/<uuid:job_id>/payload", job.payload, name="job_payload"),
]
