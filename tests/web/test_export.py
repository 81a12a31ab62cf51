"""Jobs as a file, and a job's timeline."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import pytest

from jobs.decisions import Failed, Succeeded
from jobs.models import Job
from jobs.selectors.executions import list_executions
from jobs.web import export
from jobs.web.timeline import draw_strip, steps_of
from scheduler_project.lib.sql import database_now
from scheduler_project.lib.web.tables import as_file
from tests.factories import claim_one, end, job_in, make_job, make_jobs, make_project, make_queue, reload
from tests.web.test_pages import HOSTILE


@pytest.fixture
def page(home):
    return f"{home}jobs/export"


def rows_of(answer):
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_a_file_has_what_the_list_shows(signed_in, page, queue, django_assert_max_num_queries):
    jobs = make_jobs(queue, 3, "mail.send", payload={"password": "x"})
    make_job(queue, "other")
    foreign = make_queue(make_project(queue.project.organization))
    make_jobs(foreign, 2)
    client = signed_in("viewer")
    with django_assert_max_num_queries(12):
        answer = client.get(page)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith(f'attachment; filename="jobs-{queue.project.slug}-')
    found = rows_of(answer)
    assert len(found) == 4
    assert tuple(found[0]) == export.COLUMNS
    assert "Link" not in answer
    chosen = rows_of(client.get(f"{page}?queue={queue.pk}&type=mail.send"))
    assert [row["id"] for row in chosen] == [str(job.id) for job in reversed(jobs)]
    assert {row["queue"] for row in chosen} == {queue.name}
    assert chosen[0]["created_at"].endswith("Z")
    assert rows_of(client.get(f"{page}?queue={foreign.pk}")) == []
    assert len(rows_of(client.get(f"{page}?type=mail.send"))) == 3
    make_queue(queue.project)
    assert rows_of(client.get(f"{page}?type=mail.send")) == []  # as the list: types are looked up queue by queue
    assert rows_of(client.get(f"{page}?status=failed&after=x&format=exe&window=z")) == []
    lines = client.get(f"{page}?format=ndjson").content.decode().splitlines()
    assert json.loads(lines[0])["job_type"] == "other"


def test_what_does_not_fit_is_in_the_next_file(signed_in, page, queue, monkeypatch):
    monkeypatch.setattr(export, "MOST", 5)
    monkeypatch.setattr(export, "STEP", 2)
    make_jobs(queue, 12)
    client, path, seen = signed_in("viewer"), page, []
    while path:
        answer = client.get(path)
        seen += [row["id"] for row in rows_of(answer)]
        path = answer["Link"].split(">")[0].lstrip("<") if "Link" in answer else ""
    assert seen == [str(pk) for pk in Job.objects.order_by("-id").values_list("id", flat=True)]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(text):
    answer = as_file([{"a": text, "b": -5, "c": None}], ("a", "b", "c"), "csv", "x")
    assert list(csv.reader(io.StringIO(answer.content.decode(), newline="")))[1] == [f"'{text}", "-5", ""]
    plain = as_file([{"a": text, "b": -5, "c": None}], ("a", "b", "c"), "ndjson", "x")
    assert json.loads(plain.content) == {"a": text, "b": -5, "c": None}


def test_hostile_types_are_kept_as_they_are(signed_in, page, queue):
    make_job(queue)
    Job.objects.update(job_type=HOSTILE[:200])
    assert rows_of(signed_in("viewer").get(page))[0]["job_type"] == HOSTILE[:200]


# -- the timeline --------------------------------------------------------------------------------------------------


def steps(job):
    job = reload(job)
    return steps_of(job, list_executions(job, slice(0, 20)), database_now())


def words(job):
    return [step.word for step in steps(job)]


def test_a_timeline_has_each_attempt_and_what_comes_next(queue):
    job = make_job(queue, max_attempts=3)
    assert words(job) == ["Submitted", "Waits for a worker"]
    lease = claim_one(queue, starts=0)
    assert words(job) == ["Submitted", "Claimed"]
    end(lease, Failed("no"))
    assert words(job) == ["Submitted", "Attempt 1 failed", "Next try"]
    later = steps(job)[-1]
    assert later.is_expected
    assert later.wait_s > 0
    Job.objects.filter(pk=job.pk).update(status="queued", run_at=database_now())
    lease = claim_one(queue)
    assert words(job) == ["Submitted", "Attempt 1 failed", "Attempt 2 running"]
    end(lease, Succeeded("null"))
    assert words(job) == ["Submitted", "Attempt 1 failed", "Attempt 2 completed", "Completed"]
    assert draw_strip(steps(job)).count('class="bar') == 2


def test_a_wait_is_never_negative(queue):
    job = job_in("completed", queue).job
    job.completed_at = job.created_at - timedelta(hours=1)
    found = steps_of(job, list_executions(job, slice(0, 20)), database_now())
    assert all(step.wait_s >= 0 for step in found)


@pytest.mark.parametrize("status", ["scheduled", "queued", "claimed", "running", "completed", "failed", "dead_letter"])
def test_every_state_has_a_timeline_on_its_page(signed_in, home, queue, status):
    job = job_in(status, queue).job
    html = signed_in("viewer").get(f"{home}jobs/{job.pk}").content.decode()
    assert 'class="timeline"' in html
    assert ">Submitted<" in html
