"""The ceiling: the same work by a minimal client in pure SQL, to which every figure is put in proportion.

It claims and completes in batches and writes a history row once, at the end, like the engine; it has no limits, no
types, no fairness, no leases to extend. One statement settles the last batch and claims the next.
"""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

import psycopg

from jobs.bench.stage import Say
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.scratch import Scratch

TABLES = """
create table ceiling_jobs (
  id uuid primary key, queue_id int not null, payload jsonb not null, priority int not null, status text not null,
  run_at timestamptz not null, attempt_count int not null default 0, lease_token uuid, lease_expires_at timestamptz,
  locked_by uuid, completed_at timestamptz
) with (fillfactor = 80);
create index ceiling_ready on ceiling_jobs (queue_id, priority desc, run_at, id) where status = 'queued';
create table ceiling_history (
  id uuid primary key, job_id uuid not null, attempt int not null, status text not null,
  finished_at timestamptz not null
);
"""
FILL = """
insert into ceiling_jobs (id, queue_id, payload, priority, status, run_at)
select gen_random_uuid(), 1, '{}', 0, 'queued', clock_timestamp() from generate_series(1, %s)
"""
TURN = """
with ended as (
  update ceiling_jobs as job
     set status = 'completed', attempt_count = attempt_count + 1, lease_token = null, lease_expires_at = null,
         locked_by = null, completed_at = clock_timestamp()
    from unnest(%s::uuid[], %s::uuid[]) as done(id, token)
   where job.id = done.id and job.lease_token = done.token
  returning job.id, done.token, job.attempt_count
), recorded as (
  insert into ceiling_history select token, id, attempt_count, 'completed', clock_timestamp() from ended
), picked as materialized (
  select id from ceiling_jobs where status = 'queued' and queue_id = 1
   order by priority desc, run_at, id limit %s for no key update skip locked
)
update ceiling_jobs as job
   set status = 'claimed', lease_token = gen_random_uuid(),
       lease_expires_at = clock_timestamp() + interval '60 seconds',
       locked_by = '00000000-0000-7000-8000-000000000000'
  from picked
 where job.id = picked.id
returning job.id, job.lease_token
"""


def ceilings(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """This machine's limit by itself, with one and two clients."""
    figures = []
    for clients in (1, 2):
        say(f"{jobs:,} jobs by {clients} minimal client(s)")
        figures.append(Figure(f"ceiling_{clients}", ceiling(scratch.url, jobs=jobs, clients=clients), "jobs/s"))
    return figures


def ceiling(url: str, *, jobs: int, clients: int, batch: int = 250) -> float:
    """Jobs a second that the minimal clients drain."""
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("drop table if exists ceiling_jobs, ceiling_history")
        session.execute(TABLES.encode())
        session.execute(FILL, [jobs])
        session.execute("vacuum analyze ceiling_jobs")
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(clients + 1)
    processes = [context.Process(target=_client, args=(url, batch, ready)) for _ in range(clients)]
    for process in processes:
        process.start()
    ready.wait()
    began = time.monotonic()
    for process in processes:
        process.join()
    return jobs / (time.monotonic() - began)


def _client(url: str, batch: int, ready: Any) -> None:
    with psycopg.connect(url, autocommit=True) as session:
        ids: list[Any] = []
        tokens: list[Any] = []
        ready.wait()
        while True:
            rows = session.execute(TURN, [ids, tokens, batch]).fetchall()
            if not rows:
                return
            ids, tokens = [row[0] for row in rows], [row[1] for row in rows]
