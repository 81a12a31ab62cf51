"""Django's backend for PostgreSQL, but before a request a connection is asked for its health without a round trip.

Django loads the class by its name from the module of this name.
"""

from __future__ import annotations

import select

from django.db.backends.postgresql.base import DatabaseWrapper as PostgresWrapper
from psycopg import pq


class DatabaseWrapper(PostgresWrapper):
    """Whose server has neither spoken nor hung up since the last answer is as healthy as can be known.

    A server that restarts, or ends a session, says so and closes the socket: that is readable at once. Only then the
    server is asked. A network that swallows everything is noticed no later than before: asking would wait as long.
    """

    health_check_done: bool

    def close_if_health_check_failed(self) -> None:
        """Called by Django before the first statement of each request."""
        if self.connection is not None and not self.health_check_done and _is_silent(self.connection.pgconn):
            self.health_check_done = True
        super().close_if_health_check_failed()


def _is_silent(pgconn: pq.abc.PGconn) -> bool:
    """Is the session idle, with nothing to read on its socket?"""
    if pgconn.status != pq.ConnStatus.OK or pgconn.transaction_status != pq.TransactionStatus.IDLE:
        return False
    poll = select.poll()  # select() refuses descriptors from 1,024 on
    poll.register(pgconn.socket, select.POLLIN)
    return not poll.poll(0)
