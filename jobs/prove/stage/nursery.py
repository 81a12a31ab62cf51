"""Read once by the server that forks a proof's processes: each begins with the product loaded, in no time.

It has no threads and no connections, so what it forks is as fresh as a process that was started by hand; only the
seconds in which Python reads the product are saved, of which a storm of kills would need hundreds.
"""

from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
django.setup()

from django.core.management import execute_from_command_line  # noqa: E402 - the settings come first

from jobs.prove.registry import find  # noqa: E402
from jobs.prove.stage.process import Place  # noqa: E402
from jobs.scheduler import daemon  # noqa: E402
from jobs.worker import runtime  # noqa: E402
from scheduler_project.lib import networks, pg  # noqa: E402

READ = (daemon, runtime)


def live(proof: str, guard: str, command: list[str], log: str, place: Place) -> None:
    """Be a command of manage.py, or gunicorn, in a place; without one of the proof's guards, if it says so."""
    written = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(written, stream)
    if guard:
        find(proof).breaks[guard]()
    if place.network:
        networks.enter(place.network)
    pg.use_database(place.url)
    if command[0] == "gunicorn":
        from gunicorn.app.wsgiapp import run

        sys.argv = command
        run()
        return
    execute_from_command_line(["manage.py", *command])
