"""The page of circuit breakers: what is held back comes first, and closing one by hand asks first."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from jobs.models import CircuitBreaker, Job
from orgs.models import AuditEntry
from scheduler_project.lib.sql import database_now
from tests.factories import make_jobs, make_project, make_queue
from tests.web.forms import found_in, token_of
from tests.web.test_pages import HOSTILE

BUDGET = 12


@pytest.fixture
def page(home):
    return f"{home}circuit-breakers"


def make(project, name, state="closed", **fields):
    return CircuitBreaker.objects.create(project_id=project.pk, name=name, state=state, **fields)


def read(client, path):
    return client.get(path).content.decode()


def names(html):
    return re.findall(r'class="name"><bdi>([^<]*)', html)


def test_it_stays_in_its_budget_and_what_holds_back_comes_first(
    signed_in, page, project, queue, django_assert_max_num_queries
):
    make(project, "down", "open", recent="11111", opened_at=database_now())
    for number in range(60):
        make(project, f"n{number:02}", recent="0000")
    make(project, "closing", allowance=4, recent="0")
    client = signed_in("owner")
    with django_assert_max_num_queries(BUDGET):
        html = read(client, page)
    assert names(html)[:3] == ["closing", "down", "n59"]
    rest = names(read(client, page + found_in(r'href="(\?after=[^"]*)" rel="next"', html)))
    assert rest == [f"n{number:02}" for number in range(9, -1, -1)]


def test_each_says_its_state_since_when_and_what_comes_next(signed_in, page, project, queue):
    now = database_now()
    make(project, "fresh", "open", recent="0011111", opened_at=now)
    make(project, "old", "open", recent="11111", opened_at=now - timedelta(hours=1))
    [job] = make_jobs(queue, 1)
    make(project, "probed", "half_open", recent="11111", opened_at=now, allowance=1, let_through=[job.id])
    html = read(signed_in("viewer"), page)
    rows = {names(row)[0]: row for row in html.split('id="b-')[1:]}

    assert "2 circuits are open" in html
    assert ">Open<" in rows["fresh"]
    assert "Of the last 7 calls 5 went wrong" in rows["fresh"]
    assert re.search(r'"Next probe"><time[^>]*>in 2\d s', rows["fresh"])
    assert "with the next job" in rows["old"]
    assert ">Half open<" in rows["probed"]
    assert f"jobs/{job.id}" in rows["probed"]
    assert "reset" not in html


def test_the_jobs_that_wait_are_counted(signed_in, page, project, queue):
    make(project, "mail", "open", recent="11111", opened_at=database_now())
    make_jobs(queue, 3)
    foreign = make_queue()
    make_jobs(foreign, 2)
    Job.objects.update(circuit="mail")
    assert re.search(r'"Jobs waiting">3<', read(signed_in("viewer"), page))


def test_closing_one_asks_first_and_forgets_its_calls(signed_in, page, project, queue, manager):
    one = make(project, "mail", "open", recent="11111", opened_at=database_now())
    client, path = signed_in("manager"), f"{page}/{one.pk}/reset"
    assert path in read(client, page)
    token = token_of(client.post(path))
    one.refresh_from_db()
    assert one.state == "open"
    assert client.post(path, {"confirm_token": token}).url == page
    one.refresh_from_db()
    assert (one.state, one.recent, one.opened_at) == ("closed", "", None)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.user, (entry.before or {})["state"]) == ("circuit_breaker.reset", manager, "open")
    html = read(client, page)
    assert "All good" in html
    assert path not in html  # nothing is left to forget


def test_the_kinds_of_empty(signed_in, page, project, queue):
    client = signed_in("viewer")
    assert "There are no circuit breakers yet" in read(client, page)
    make(project, "mail")
    assert "name contains" in read(client, f"{page}?q=zzz%00")
    assert names(read(client, f"{page}?q=AI")) == ["mail"]


def test_those_of_other_projects_do_not_exist_here(signed_in, page, organization, queue):
    sister = make(make_project(organization), "theirs", "open", opened_at=database_now())
    client = signed_in("owner")
    assert "theirs" not in read(client, page)
    assert client.post(f"{page}/{sister.pk}/reset").status_code == 404


def test_hostile_names_are_text(signed_in, page, project, queue):
    make(project, HOSTILE[:300], "open", recent="1", opened_at=database_now())
    html = read(signed_in("owner"), page)
    assert "<svg onload" not in html
    assert "\u202e" not in html
