"""Paths of dead letters, below an organization and a project."""

from django.urls import path

from dlq.web import views

urlpatterns = [
    path("dead-letter", views.letters, name="dead_letter"),
    path("dead-letter/resolve", views.resolve_many, name="letters_resolve"),
    path("dead-letter/<uuid:letter_id>", views.letter, name="letter"),
    path("dead-letter/<uuid:letter_id>/resolve", views.resolve, name="letter_resolve"),
]
