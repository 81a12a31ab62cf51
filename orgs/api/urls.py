"""Paths under /api/."""

from django.urls import path

from orgs.api import views

app_name = "orgs_api"
urlpatterns = [
    path("organizations", views.OrganizationsView.as_view(), name="organizations"),
    path("projects", views.ProjectsView.as_view(), name="projects"),
    path("projects/<uuid:project_id>", views.ProjectView.as_view(), name="project"),
]
