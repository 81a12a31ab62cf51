"""Paths of workers, below an organization and a project."""

from django.urls import path

from jobs.web import workers

urlpatterns = [
    path("workers", workers.workers, name="workers"),
    path("workers/<uuid:worker_id>/drain", workers.drain, name="worker_drain"),
]
