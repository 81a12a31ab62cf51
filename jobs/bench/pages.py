"""The pages of a large project: what each costs the web process and the database."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator

from jobs.bench.stage import Say
from scheduler_project.lib.figures import Figure
from scheduler_project.lib.ids import NEW_ID
from scheduler_project.lib.scratch import Scratch

PROGRAM = [sys.executable, "-m", "jobs.bench.pages_here"]
QUEUES, SCHEDULES = 1_000, 500
#: One job in so many has an attempt in the history; all of them would make the filling as long as the measure.
HAS_HISTORY = 5
MAKE_QUEUES = """
insert into queues (id, project_id, name, priority, is_paused, paused_reason, visibility_timeout_secs, updated_at)
select gen_random_uuid(), id, 'queue-' || lpad(n::text, 4, '0'), n %% 5, n %% 50 = 0,
       case when n %% 50 = 0 then 'paused by the benchmark' else '' end, 60, now()
  from projects, generate_series(1, %s) as n
"""
#: Ended jobs mostly, over the last day, with some that wait, are to come, or have failed for good.
MAKE_JOBS = f"""
insert into jobs (id, project_id, queue_id, job_type, payload, status, run_at, created_at, updated_at, completed_at,
                  attempt_count, error_message)
select {NEW_ID}, queue.project_id, queue.id, 'type-' || job.n %% 20, jsonb_build_object('order', job.n), job.status,
       case when job.status = 'scheduled' then now() + interval '1 day' else job.at end, job.at, job.at,
       case when job.status in ('completed', 'cancelled', 'dead_letter') then job.at + interval '1 second' end,
       case when job.status in ('completed', 'dead_letter') then 1 else 0 end,
       case when job.status = 'dead_letter' then 'ValueError: no customer ' || job.n end
  from (select n, now() - make_interval(secs => (n %% 86400)) as at,
               (array['queued', 'scheduled', 'dead_letter', 'cancelled'])[case when n %% 20 < 4 then n %% 20 + 1 end]
          from generate_series(1, %s) as n) as made(n, at, other)
 cross join lateral (select made.n, made.at, coalesce(made.other, 'completed') as status) as job
  join (select id, project_id, row_number() over (order by name) as place, count(*) over () as of from queues) as queue
    on queue.place = job.n %% queue.of + 1
"""  # noqa: S608 - constants
#: What workers and submissions would have counted meanwhile; a scheduler adds it up. By the minute for the last hour,
#: by the hour before that: it is the pages that are measured, and they read no more rows for it.
MAKE_COUNTS = """
insert into job_stat_deltas (project_id, queue_id, job_type, at, created, started, completed, failed, dead)
select project_id, queue_id, job_type,
       date_trunc(case when created_at > now() - interval '1 hour' then 'minute' else 'hour' end, created_at), count(*),
       count(*) filter (where attempt_count > 0), count(*) filter (where status = 'completed'),
       count(*) filter (where status = 'dead_letter'), count(*) filter (where status = 'dead_letter')
  from jobs group by 1, 2, 3, 4
"""
MAKE_HISTORY = """
insert into job_executions (id, project_id, job_id, attempt_number, fencing_number, status, claimed_at, started_at,
                            finished_at, duration_ms, error_message)
select gen_random_uuid(), project_id, id, 1, 1, case when status = 'completed' then 'completed' else 'failed' end,
       created_at, created_at, completed_at, 1000, error_message
  from jobs where attempt_count > 0 and hashtext(id::text) %% %s = 0
"""
MAKE_LETTERS = """
insert into dead_letter_queue (id, project_id, job_id, queue_id, job_type, payload_snapshot, failure_reason,
                               attempt_count, last_error, moved_at, resolved)
select gen_random_uuid(), project_id, id, queue_id, job_type, payload, 'attempts used up', 1, error_message,
       completed_at, false
  from jobs where status = 'dead_letter'
"""
#: What a day of work leaves of the project and of the queue whose page is opened: in each minute and hour something.
MAKE_DAY = """
insert into job_stats (project_id, queue_id, job_type, grain, at, created, started, completed, failed, retried, dead,
                       cancelled, expired, wait_ms, run_ms, wait_histogram, run_histogram)
select project.id, place.queue_id, place.job_type, unit.grain,
       date_trunc(unit.grain, now(), 'UTC') - n * make_interval(secs => unit.seconds),
       9, 9, 7, 2, 1, 1, 1, 1, 900, 900, spread.histogram, spread.histogram
  from projects as project
 cross join (select '00000000-0000-0000-0000-000000000000'::uuid, '' union all
             select id, 'type-' || kind from (select id from queues order by name limit 1) as first,
                    generate_series(1, 5) as kind) as place(queue_id, job_type)
 cross join (values ('minute', 60), ('hour', 3600)) as unit(grain, seconds)
 cross join generate_series(0, 86400 / unit.seconds - 1) as n
 cross join (select array_agg(case when bucket in (4, 7, 9, 12, 20, 21) then 3 else 0 end) as histogram
               from generate_series(0, 47) as bucket) as spread
    on conflict do nothing
"""
MAKE_DEPTHS = """
insert into queue_depths (project_id, queue_id, at, ready, scheduled, in_flight, dead_letters)
select project_id, id, date_trunc('minute', now()) - make_interval(mins => n), 10 + n %% 7, n %% 50, n %% 3, 5
  from (select project_id, id from queues
         union all select id, '00000000-0000-0000-0000-000000000000' from projects) as place,
       generate_series(0, %s, %s) as n
    on conflict do nothing
"""
COUNTED = "select count(*) from job_stat_deltas"
COUNTING_LIMIT_S = 600


def pages(scratch: Scratch, *, jobs: int, say: Say) -> list[Figure]:
    """Every page that reads, as an owner, with ``jobs`` jobs in 1,000 queues and 500 schedules behind it."""
    say(f"filling {jobs:,} jobs in {QUEUES:,} queues")
    with scratch.connect() as session:
        session.execute(MAKE_QUEUES, [QUEUES])
        session.execute(MAKE_JOBS, [jobs])
        session.execute(MAKE_HISTORY, [HAS_HISTORY])
        session.execute(MAKE_LETTERS)
        session.execute(MAKE_COUNTS)
        session.execute("vacuum analyze")
    asked = json.dumps({"schedules": SCHEDULES})
    with _leader(scratch):
        say("adding up the statistics")
        _wait_until_counted(scratch)
        with scratch.connect() as session:
            session.execute(MAKE_DAY)
            session.execute(MAKE_DEPTHS, [1439, 4])
            session.execute("vacuum analyze job_stats, queue_depths")
        say("opening each page")
        found = json.loads(scratch.run(PROGRAM, asked, DJANGO_SETTINGS_MODULE="scheduler_project.settings"))
    for name, page in sorted(found.items(), key=lambda item: -item[1]["p95"]):
        times = f"{page['p50']:>8.1f} ms, p95 {page['p95']:>8.1f} ms"
        say(f"  {name:<22}{times}{page['queries']:>4} queries")
    slowest = max(found.values(), key=lambda page: page["p95"])
    return [
        Figure("pages", len(found), "pages opened"),
        Figure("slowest_page_p50", slowest["p50"], "ms"),
        Figure("slowest_page_p95", slowest["p95"], "ms", 150.0, is_most=True),
        Figure("most_queries", max(page["queries"] for page in found.values()), "", 12, is_most=True),
    ]


@contextlib.contextmanager
def _leader(scratch: Scratch) -> Iterator[None]:
    """A scheduler beside it: pages read what it counts."""
    scheduler = scratch.start("runscheduler")
    try:
        yield
    finally:
        scheduler.terminate()
        scheduler.wait(30)


def _wait_until_counted(scratch: Scratch) -> None:
    deadline = time.monotonic() + COUNTING_LIMIT_S
    while scratch.value(COUNTED):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the statistics were not added up within {COUNTING_LIMIT_S} s")
        time.sleep(0.5)
