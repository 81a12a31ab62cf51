"""App config."""

from django.apps import AppConfig


class QueuesConfig(AppConfig):
    """The queues wing."""

    name = "queues"
