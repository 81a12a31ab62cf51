"""Paths under /api/auth/."""

from django.urls import path

from accounts.api import views

app_name = "accounts_api"
urlpatterns = [
    path("register", views.RegisterView.as_view(), name="register"),
    path("login", views.LoginView.as_view(), name="login"),
    path("refresh", views.RefreshView.as_view(), name="refresh"),
    path("logout", views.LogoutView.as_view(), name="logout"),
    path("password", views.PasswordView.as_view(), name="password"),
]
