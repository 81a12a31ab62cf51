"""App config."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """The accounts wing."""

    name = "accounts"
