"""The page of workers: who is seen by whom, what they run, draining, and who leads."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from jobs.models import LeaderTerm, Worker, WorkerHeartbeat
from orgs.models import AuditEntry
from scheduler_project.lib.sql import database_now
from tests.factories import claim_one, make_job, make_project, make_queue
from tests.web.forms import found_in, token_of
from tests.web.test_pages import HOSTILE


def make_worker(**fields):
    return Worker.objects.create(**{"hostname": "host-a", "pid": 7, "version": "1.0", "max_concurrency": 4, **fields})


@pytest.fixture
def page(home):
    return f"{home}workers"


def read(client, path):
    return client.get(path).content.decode()


def test_it_stays_in_its_budget(signed_in, page, queue, django_assert_max_num_queries):
    for number in range(80):
        worker = make_worker(hostname=f"host-{number:02}")
        WorkerHeartbeat.objects.create(worker=worker, active_job_count=2, cpu_percent=12.5, memory_mb=80)
    client = signed_in("viewer")
    with django_assert_max_num_queries(12):
        html = read(client, page)
    assert html.count('class="panel worker') == 60
    rest = read(client, page + found_in(r'href="(\?after=[^"]*)" rel="next"', html))
    assert rest.count('class="panel worker') == 20
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html)


def test_a_worker_with_its_jobs_and_those_of_others_only_as_a_number(signed_in, page, queue):
    worker = make_worker()
    WorkerHeartbeat.objects.create(worker=worker, active_job_count=3, cpu_percent=41.2, memory_mb=212.6)
    make_job(queue, "mail.send")
    claim_one(queue, worker_id=worker.pk)
    foreign = make_queue()
    make_job(foreign, "their.secret")
    claim_one(foreign, worker_id=worker.pk)
    html = read(signed_in("viewer"), page)

    assert "mail.send" in html
    assert "their.secret" not in html
    assert "2 of other projects" in html
    assert "CPU 41 % · 213 MB" in html
    assert re.search(r'>3 <span class="quiet">/ 4 slots', html)


def test_names_of_other_organizations_queues_are_not_shown(signed_in, page, queue, organization, project):
    mine, other = f"{organization.slug}/{project.slug}/{queue.name}", make_queue()
    theirs = f"{other.project.organization.slug}/{other.project.slug}/{other.name}"
    make_worker(subscribed_queues=[mine, theirs, "*"])
    html = read(signed_in("viewer"), page)

    assert f"<code><bdi>{queue.name}</bdi></code>" in html
    assert other.name not in html
    assert "queues of others" in html


def test_a_worker_over_http_is_seen_in_its_own_project_only(signed_in, page, project, organization):
    make_worker(hostname="mine", project=project)
    make_worker(hostname="sister", project=make_project(organization))
    html = read(signed_in("owner"), page)

    assert "mine" in html
    assert "sister" not in html


def test_silent_lost_and_left_ones_have_their_words(signed_in, page, queue):
    now = database_now()
    make_worker(hostname="fine")
    make_worker(hostname="silent", last_seen_at=now - timedelta(minutes=2))
    make_worker(hostname="drains", status="draining")
    make_worker(hostname="lost", status="lost", last_seen_at=now - timedelta(hours=1))
    make_worker(hostname="left", status="stopped", last_seen_at=now - timedelta(hours=1))
    make_worker(hostname="longago", status="lost", last_seen_at=now - timedelta(days=3))
    client = signed_in("viewer")

    head = r'class="worker-head"><span[^>]*><svg.*?</svg><span>([\w ]+)</span>.*?<bdi>(\w+)</bdi>'

    def shown(query=""):
        return dict(re.findall(head, read(client, page + query), re.DOTALL))

    assert shown() == {"Alive": "fine", "Not reporting": "silent", "Draining": "drains", "Lost": "lost"}
    assert shown("?show=left") == {"Left": "left"}
    assert shown("?show=lost") == {"Lost": "lost"}
    assert shown("?show=draining") == {"Draining": "drains"}
    assert shown("?q=fin") == {"Alive": "fine"}
    assert shown("?q=%00zz&after=x") == {}


def test_the_kinds_of_empty(signed_in, page, queue):
    client = signed_in("viewer")

    assert "No worker is alive" in read(client, page)
    assert "All good: no worker was lost" in read(client, f"{page}?show=lost")
    assert "host contains" in read(client, f"{page}?q=zz")


def test_only_a_worker_over_http_can_be_drained_here_and_only_once_confirmed(signed_in, home, page, project):
    remote, shared = make_worker(project=project), make_worker(hostname="shared")
    client, path = signed_in("manager"), f"{home}workers/{remote.pk}/drain"

    assert f'action="{path}"' in read(client, page)
    assert str(shared.pk) + "/drain" not in read(client, page)
    assert client.post(f"{home}workers/{shared.pk}/drain").status_code == 404
    token = token_of(client.post(path))
    asked = Worker.objects.filter(pk=remote.pk, drain_requested_at__isnull=False)
    assert not asked.exists()
    assert client.post(path, {"confirm_token": token}).url == page
    assert asked.exists()
    assert AuditEntry.objects.get().action == "worker.drain"
    assert "Asked to drain" in read(client, page)
    Worker.objects.filter(pk=remote.pk).update(status="stopped")
    assert "is-error" in client.post(path, {"confirm_token": token}, follow=True).content.decode()


def test_a_worker_of_a_sister_project_can_not_be_drained_from_here(signed_in, home, organization, queue):
    sister = make_worker(project=make_project(organization))

    assert signed_in("owner").post(f"{home}workers/{sister.pk}/drain").status_code == 404


def test_who_leads_and_who_led(signed_in, page, queue):
    client = signed_in("viewer")
    assert "No scheduler leads" in read(client, page)
    LeaderTerm.objects.create(hostname="older", pid=1, backend_pid=1, ended_at=Now())
    LeaderTerm.objects.create(hostname="leader", pid=2, backend_pid=2)
    html = read(client, page)
    assert "No scheduler leads" not in html
    assert html.index(">Leads<") < html.index(">Ended<")
    LeaderTerm.objects.filter(hostname="leader").update(renewed_at=database_now() - timedelta(minutes=5))
    assert "No scheduler leads" in read(client, page)


def test_a_queue_without_a_worker_comes_first(signed_in, page, queue, project, organization):
    served = make_queue(project, name="served")
    make_worker(subscribed_queues=[f"{organization.slug}/{project.slug}/served"], max_concurrency=9)
    html = read(signed_in("viewer"), page).split("Capacity for each queue")[1]

    assert html.index(queue.name) < html.index(served.name)
    assert ">None<" in html


def test_hostile_names_are_text(signed_in, page, queue):
    make_worker(hostname=HOSTILE, version=HOSTILE[:40])
    make_worker(hostname="b", version="2")
    LeaderTerm.objects.create(hostname=HOSTILE, pid=2, backend_pid=2)
    html = read(signed_in("owner"), page)

    assert "<svg onload" not in html
    assert "\u202e" not in html
    assert "&lt;svg onload" in html
