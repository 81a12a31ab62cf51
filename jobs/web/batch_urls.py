"""Paths of batches, below an organization and a project."""

from django.urls import path

from jobs.web import batches

urlpatterns = [
    path("batches", batches.batches, name="batches"),
    path("batches/<uuid:batch_id>", batches.batch, name="batch"),
    path("batches/<uuid:batch_id>/close", batches.close, name="batch_close"),
    path("batches/<uuid:batch_id>/cancel", batches.cancel, name="batch_cancel"),
]
