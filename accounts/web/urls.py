"""Paths of people's own pages."""

from django.urls import path

from accounts.web import views

urlpatterns = [
    path("login", views.sign_in, name="login"),
    path("register", views.register, name="register"),
    path("logout", views.sign_out, name="logout"),
    path("preferences", views.choose, name="preferences"),
]
