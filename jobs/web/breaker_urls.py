"""Paths of circuit breakers, below an organization and a project."""

from django.urls import path

from jobs.web import breakers

urlpatterns = [
    path("circuit-breakers", breakers.breakers, name="circuit_breakers"),
    path("circuit-breakers/<uuid:breaker_id>/reset", breakers.reset_breaker, name="circuit_breaker_reset"),
]
