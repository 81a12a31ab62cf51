"""Pages by cursor: complete and without repeats while rows arrive; useless for any other list."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.selectors import job_lists
from scheduler_project.lib.ids import moment_of
from tests.factories import claim_one, job_in, make_job, make_jobs, make_queue
from tests.personas import field_of


def _follow(api, path: str, between=lambda: None, **query) -> list[str]:
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = api.get(path, **query, **({"cursor": cursor} if cursor else {})).json()
        assert len(page["items"]) <= query["limit"]
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        between()
    return seen


@pytest.mark.parametrize("is_narrow", [True, False])
def test_pages_do_not_shift_while_jobs_arrive(as_machine, queue, is_narrow):
    other = make_queue(queue.project)
    expected = [str(job.id) for pair in zip(make_jobs(queue, 6), make_jobs(other, 6), strict=True) for job in pair]
    query = {"queue_id": queue.pk} if is_narrow else {}

    seen = _follow(as_machine, "jobs", lambda: make_job(queue) and make_job(other), limit=4, **query)

    wanted = expected[::2] if is_narrow else expected
    assert seen == sorted(wanted, reverse=True)


def test_offset_and_cursor_lead_to_the_same_rows(as_machine, queue):
    make_jobs(queue, 5)

    first = as_machine.get("jobs", limit=2).json()
    by_cursor = as_machine.get("jobs", limit=2, cursor=first["next_cursor"]).json()
    by_offset = as_machine.get("jobs", limit=2, offset=first["next_offset"]).json()

    assert by_cursor["items"] == by_offset["items"]


def test_a_cursor_is_of_one_list_and_its_filters(as_machine, queue):
    make_jobs(queue, 3)
    cursor = as_machine.get("jobs", limit=1).json()["next_cursor"]

    bad = [
        ("jobs", {"cursor": cursor, "status": "queued"}),
        ("jobs", {"cursor": cursor, "queue_id": queue.pk}),
        ("jobs", {"cursor": cursor, "offset": 1}),
        ("jobs", {"cursor": cursor[:-3] + "AAA"}),
        ("jobs", {"cursor": "%00\u00ff!!"}),
        ("jobs", {"cursor": "x" * 2_000}),
        ("jobs", {"cursor": ""}),
        ("queues", {"cursor": cursor}),
    ]
    for path, query in bad:
        answer = as_machine.get(path, **query)
        assert (answer.status_code, field_of(answer)) == (400, "cursor"), query
    assert as_machine.get("jobs", limit=2, cursor=cursor).status_code == 200


def test_jobs_can_be_narrowed_by_status_and_time(as_machine, queue):
    done, old = job_in("completed", queue).job, make_job(queue)
    held = make_job(queue)
    claim_one(queue)
    later = make_job(queue, delay_s=60)
    split = moment_of(held.pk).isoformat()

    def ids(**query):
        return [item["id"] for item in as_machine.get("jobs", **query).json()["items"]]

    assert ids(status="completed") == [str(done.pk)]
    assert ids(status="scheduled", queue_id=queue.pk) == [str(later.pk)]
    assert ids(status="running") == [str(old.pk)]
    assert ids(status="failed") == []
    assert set(ids(created_from=split)) >= {str(held.pk), str(later.pk)}
    assert str(later.pk) not in ids(created_to=(moment_of(later.pk)).isoformat())
    assert ids(created_from=(moment_of(later.pk) + timedelta(hours=1)).isoformat()) == []


@pytest.mark.parametrize("few", [0, 2, 5_000])
def test_queued_jobs_are_listed_newest_first_however_many_there_are(as_machine, queue, monkeypatch, few):
    monkeypatch.setattr("jobs.managers.FEW_QUEUED", few)
    other = make_queue(queue.project)
    jobs = [make_job(queue, priority=n) for n in (5, -5, 0)] + [make_job(other)]
    make_job(queue, delay_s=60)

    seen = _follow(as_machine, "jobs", status="queued", limit=2)

    assert seen == [str(job.pk) for job in reversed(jobs)]


def test_a_rare_type_is_found_over_several_short_pages(as_machine, queue, monkeypatch):
    monkeypatch.setattr(job_lists, "SCAN", 4)
    rare = [str(make_job(queue, "rare").pk)]
    make_jobs(queue, 9)
    rare.append(str(make_job(queue, "rare").pk))
    make_jobs(queue, 3)

    seen = _follow(as_machine, "jobs", queue_id=queue.pk, job_type="rare", limit=5)

    assert seen == rare[::-1]


def test_a_type_needs_its_queue(as_machine):
    answer = as_machine.get("jobs", job_type="noop")

    assert (answer.status_code, field_of(answer)) == (400, "job_type")


def test_attempts_and_lines_have_cursors_too(as_machine, queue):
    job = job_in("completed", queue).job

    for path in (f"jobs/{job.pk}/executions", f"jobs/{job.pk}/logs"):
        assert as_machine.get(path, limit=1).json()["next_cursor"] is None


def test_other_lists_follow_theirs(as_machine, as_owner, queue):
    for _ in range(4):
        make_queue(queue.project)

    assert len(set(_follow(as_machine, "queues", limit=2))) == 5
    assert len(set(_follow(as_owner, "projects", limit=1))) == 1
