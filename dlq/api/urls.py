"""Paths under /api/."""

from django.urls import path

from dlq.api import views

app_name = "dlq_api"
urlpatterns = [
    path("dead-letter", views.LettersView.as_view(), name="letters"),
    path("dead-letter/<uuid:letter_id>", views.LetterView.as_view(), name="letter"),
    path("dead-letter/<uuid:letter_id>/resolve", views.ResolveView.as_view(), name="resolve"),
]
