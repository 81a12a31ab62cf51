"""Paths of the engine's pages, below an organization and a project."""

from django.urls import path

from jobs.web import dashboard, entry

urlpatterns = [
    path("", dashboard.dashboard, name="dashboard"),
    path("jump", entry.jump, name="jump"),
    path("first-job", entry.first_arrival, name="first_arrival"),
]
