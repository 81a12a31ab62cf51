"""Do hints arrive, and does a session stay the same session? A pooler in between may swallow both."""

from __future__ import annotations

import uuid

from django.conf import settings

from jobs.doctor.finding import Findings, problem
from scheduler_project.lib.pg import connect_direct

WAIT_S = 2.0
_DO = "let APP_DATABASE_DIRECT_URL lead past the pooler, straight to PostgreSQL"


def look() -> Findings:
    """Notify ourselves; take a lock and see whether it is still ours."""
    with connect_direct("punctual doctor") as session:
        if settings.LISTEN:
            channel, word = "punctual_doctor", uuid.uuid4().hex
            session.execute(f"listen {channel}")
            session.execute("select pg_notify(%s, %s)", [channel, word])
            # Read to its end: a generator left half-way keeps the session locked.
            heard = [note.payload for note in session.notifies(timeout=WAIT_S, stop_after=1)]
            if word not in heard:
                yield problem(f"a hint did not arrive within {WAIT_S:.0f} s: work is found by poll alone", _DO)
        pids = {row[0] for _ in range(5) for row in session.execute("select pg_backend_pid()")}
        if len(pids) > 1:
            yield problem(
                "statements of one session reach several sessions of the server: no scheduler can lead for long", _DO
            )
