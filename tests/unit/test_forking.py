"""What a forked process must not share with the one it was forked from."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.processes import ROOT

CODE = """
import os, django
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
django.setup()
from jobs.events import _sender
ours, theirs = os.pipe()
if os.fork() == 0:
    os.write(theirs, _sender._name.encode())
    os._exit(0)
os.wait()
print(_sender._name, os.read(ours, 100).decode())
"""


def test_a_forked_process_sends_events_under_a_name_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, env=os.environ, capture_output=True, check=True)

    parent, child = done.stdout.decode().split()
    assert len(parent) == len(child) == 32
    assert parent != child
