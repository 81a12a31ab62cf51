"""The page of the audit log: who did what on what, found by each of them."""

from __future__ import annotations

import re

import pytest

from orgs.access import Machine, Person
from orgs.audit import deed
from orgs.models import ApiKey, AuditEntry
from orgs.services import create_api_key
from queues.services import pause_queue, update_queue
from tests.factories import make_organization, make_project, make_queue
from tests.web.forms import found_in
from tests.web.test_pages import HOSTILE

BUDGET = 12


@pytest.fixture
def page(home):
    return f"{home}audit-log"


def read(client, path):
    return client.get(path).content.decode()


def actions(html):
    return re.findall(r'<a class="name" href="\?action=[^"]*"><bdi>([\w.]+)', html)


def paused(queue, actor, reason="deploy"):
    with deed(actor, "queue.pause", queue):
        pause_queue(queue, reason=reason)


def test_it_stays_in_its_budget_and_turns_pages(signed_in, page, queue, owner, django_assert_max_num_queries):
    for number in range(60):
        paused(queue, Person(owner.pk), f"r{number}")
    client = signed_in("manager")
    with django_assert_max_num_queries(BUDGET):
        html = read(client, page)
    assert len(actions(html)) == 50
    rest = read(client, page + found_in(r'href="(\?after=[^"]*)" rel="next"', html))
    assert len(actions(rest)) == 10
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html)


def test_an_entry_says_who_what_on_what_and_the_change(signed_in, page, home, queue, owner):
    paused(queue, Person(owner.pk))
    html = read(signed_in("manager"), page)

    assert owner.email in html
    assert f'{home}queues/{queue.pk}"' in html
    assert "<del><bdi></bdi></del> → <ins><bdi>deploy</bdi></ins>" in html


def test_each_filter_finds_its_own(signed_in, page, project, organization, queue, owner, manager):
    key = create_api_key(project, name="deployer", by=None).row
    other = make_queue(make_project(organization))
    paused(queue, Person(owner.pk))
    paused(other, Person(manager.pk))
    with deed(Machine(key.pk, project.pk, "manage"), "queue.update", queue):
        update_queue(queue, priority=3)
    client = signed_in("manager")

    def count(query):
        return len(actions(read(client, f"{page}?{query}")))

    assert count("") == 3
    assert count(f"actor={owner.email}") == 1
    assert count("actor=DEPLOY") == 1
    assert count("action=queue.") == 3
    assert count("action=queue.update") == 1
    assert count("kind=queue") == 3
    assert count("kind=job") == 0
    assert count("kind=nonsense") == 3
    assert count(f"object={other.pk}") == 1
    assert count("project=this") == 2
    assert count("actor=%00%00&after=x&object=%00") == 3
    assert "fits these filters" in read(client, f"{page}?kind=job")
    ApiKey.objects.all().delete()
    assert "somebody who is gone" in read(client, page)


def test_only_admins_of_the_organization_read_it(signed_in, page, home, queue, owner):
    foreign = make_queue(make_project(make_organization()))
    paused(foreign, Person(owner.pk))
    assert "Nothing was done yet" in read(signed_in("manager"), page)
    assert signed_in("member").get(page).status_code == 403
    assert page not in read(signed_in("member"), home)
    assert page in read(signed_in("manager"), home)


def test_hostile_texts_are_text(signed_in, page, queue, owner, project, organization):
    paused(queue, Person(owner.pk), "x")
    AuditEntry.objects.create(
        organization=organization, project_id=project.pk, action=HOSTILE[:60], target_type=HOSTILE[:40],
        target_id=HOSTILE[:80], before={HOSTILE: HOSTILE}, after={HOSTILE: [HOSTILE]}, request_id=HOSTILE[:64],
    )  # fmt: skip
    html = read(signed_in("manager"), page)
    assert "<svg onload" not in html
    assert "\u202e" not in html
