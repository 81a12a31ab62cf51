"""Paths of queues, below an organization and a project."""

from django.urls import path

from queues.web import views

urlpatterns = [
    path("queues", views.queues, name="queues"),
    path("queues/new", views.new_queue, name="queue_new"),
    path("queues/<uuid:queue_id>", views.queue, name="queue"),
    path("queues/<uuid:queue_id>/edit", views.edit, name="queue_edit"),
    path("queues/<uuid:queue_id>/pause", views.pause, name="queue_pause"),
    path("queues/<uuid:queue_id>/resume", views.resume, name="queue_resume"),
    path("queues/<uuid:queue_id>/purge", views.purge, name="queue_purge"),
    path("queues/<uuid:queue_id>/delete", views.delete, name="queue_delete"),
]
