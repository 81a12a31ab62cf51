"""A replica of the embedded PostgreSQL: it follows, takes over, and one address finds whoever takes writes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from scheduler_project.lib import embedded_replica
from scheduler_project.lib.embedded_pg import THROWAWAY, EmbeddedPostgres, EmbeddedPostgresError
from scheduler_project.lib.embedded_replica import Replica
from scheduler_project.lib.pg import settings_from_url
from tests.waiting import wait_until

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {**THROWAWAY, "max_connections": "20", "shared_buffers": "16MB"}


@pytest.fixture
def primary(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedPostgres]:
    # Not pytest's own folder: that is closed to the account that the server runs under for root.
    folder = Path(tempfile.mkdtemp(prefix="punctual-pg-"))
    folder.chmod(0o755)
    monkeypatch.setenv("APP_EMBEDDED_PG_HOME", str(folder))
    server = EmbeddedPostgres(ROOT, "main", SETTINGS).ensure()
    server.create_database("orders")
    yield server
    server.stop("immediate")
    shutil.rmtree(folder)


@pytest.fixture
def replica(primary: EmbeddedPostgres) -> Iterator[Replica]:
    made = Replica(ROOT, "replica", primary)
    yield made
    made.remove()
    assert not made.home.exists()


def test_a_replica_follows_and_takes_over_by_the_address_of_both(primary: EmbeddedPostgres, replica: Replica) -> None:
    replica.ensure()
    found = settings_from_url(f"postgresql://punctual@/orders?host={replica.socket_dir},{primary.socket_dir}&port=5432")
    both = {"host": found["HOST"], "port": found["PORT"], "user": found["USER"], "dbname": "orders"}
    with psycopg.connect(**both, **found["OPTIONS"], autocommit=True) as session:
        assert session.info.host == str(primary.socket_dir)
        session.execute("create table things as select 1 as one")
    with psycopg.connect(replica.url("orders"), autocommit=True) as follower:
        assert follower.execute("show transaction_read_only").fetchone() == ("on",)
        wait_until(lambda: follower.execute("select to_regclass('things') is not null").fetchone() == (True,))

    primary.kill()
    replica.promote()

    with psycopg.connect(**both, **found["OPTIONS"], autocommit=True) as session:
        assert session.info.host == str(replica.socket_dir)
        assert session.execute("insert into things values (2) returning one").fetchone() == (2,)


def test_without_the_program_that_copies_it_says_what_is_missing(
    primary: EmbeddedPostgres, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_replica, "_COPY", "pg_no_such_program")

    with pytest.raises(EmbeddedPostgresError, match="pg_no_such_program is not there"):
        replica.ensure()
