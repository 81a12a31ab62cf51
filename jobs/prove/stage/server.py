"""A PostgreSQL of a proof's own, whatever the installation uses: one that may be stopped, killed and cut off."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from django.conf import settings

from jobs.prove.stage.proof import NotPossible
from jobs.prove.stage.stage import Stage
from scheduler_project.lib.embedded import folders
from scheduler_project.lib.embedded.errors import EmbeddedPostgresError
from scheduler_project.lib.embedded_pg import DURABLE, EmbeddedPostgres
from scheduler_project.lib.networks import Host
from scheduler_project.lib.only_one import AlreadyRunningError, only_one

NAME = "punctual"


@contextlib.contextmanager
def own_server(
    stage: Stage, name: str, more: Mapping[str, str] | None = None, host: Host | None = None
) -> Iterator[EmbeddedPostgres]:
    """A server with the product's tables, durable; the stage plays there until the end.

    Args:
        stage: the proof's.
        name: of the server, one for each proof.
        more: settings of the server.
        host: in whose network it listens, if it does.

    Raises:
        NotPossible: none can be had, and why.
    """
    server, before = EmbeddedPostgres(settings.BASE_DIR, name, {**DURABLE, **(more or {})}), stage.url
    with contextlib.ExitStack() as at_end:
        try:
            folders.make_passable(server.base)
            at_end.enter_context(only_one(server.base / f"{name}.run"))
            at_end.callback(server.remove)
            server.remove()  # what a run left behind that was killed
            host.call(server.ensure) if host else server.ensure()
            server.create_database(NAME)
        except (EmbeddedPostgresError, AlreadyRunningError, OSError) as error:
            raise NotPossible(f"a PostgreSQL of its own can not be had: {error}") from error
        at_end.callback(stage.move_to, before)
        at_end.callback(stage.close)
        stage.move_to(server.url(NAME))
        if stage.start("migrate", "--verbosity", "0").wait(120) != 0:
            raise NotPossible("the tables could not be made in a server of its own")
        yield server
