"""Paths of retry policies, below an organization and a project."""

from django.urls import path

from queues.web import retry_policies as views

_ONE = "retry-policies/<uuid:policy_id>"
urlpatterns = [
    path("retry-policies", views.retry_policies, name="retry_policies"),
    path("retry-policies/new", views.new, name="retry_policy_new"),
    path("retry-policies/preview", views.preview, name="retry_policy_preview"),
    path(_ONE, views.retry_policy, name="retry_policy"),
    path(f"{_ONE}/edit", views.edit, name="retry_policy_edit"),
    path(f"{_ONE}/delete", views.delete, name="retry_policy_delete"),
]
