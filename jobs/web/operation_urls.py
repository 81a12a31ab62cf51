"""Paths of operations, below an organization and a project."""

from django.urls import path

from jobs.web import operations

urlpatterns = [
    path("operations", operations.operations, name="operations"),
    path("operations/<uuid:operation_id>", operations.operation, name="operation"),
    path("operations/<uuid:operation_id>/abort", operations.abort_operation, name="operation_abort"),
]
