"""App config."""

from django.apps import AppConfig


class DlqConfig(AppConfig):
    """The dlq wing."""

    name = "dlq"
