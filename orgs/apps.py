"""App config."""

from django.apps import AppConfig


class OrgsConfig(AppConfig):
    """The orgs wing."""

    name = "orgs"
