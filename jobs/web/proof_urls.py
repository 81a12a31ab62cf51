"""Path of the proofs, below an organization and a project."""

from django.urls import path

from jobs.web import proofs

urlpatterns = [path("proofs", proofs.proofs, name="proofs")]
