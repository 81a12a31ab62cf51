"""Pages of operations: what was asked for, how far it is, and the abort that asks first."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.models import Operation
from jobs.services.operations import NewOperation, abort, prepare, start
from orgs.models import AuditEntry
from scheduler_project.lib.sql import database_now
from tests.factories import make_job, make_jobs, make_queue
from tests.web.forms import found_in, token_of
from tests.web.test_pages import HOSTILE

BUDGET = 12


def begun(project, action="cancel", *, by=None, **fields):
    operation, _ = prepare(project, NewOperation(**{"action": action, "filter": {}, **fields}))
    return start(operation, by=by, api_key_id=None)


def read(client, path):
    return client.get(path).content.decode()


def test_the_pages_stay_in_their_budget(signed_in, home, project, queue, owner, django_assert_max_num_queries):
    for number in range(60):
        one = begun(project, filter={"queue_id": make_queue(project).pk}, by=owner.pk, reason=f"r{number}")
    client = signed_in("viewer")
    for path in ("operations", f"operations/{one.pk}"):
        with django_assert_max_num_queries(BUDGET):
            answer = client.get(home + path)
        assert answer.status_code == 200
    html = read(client, f"{home}operations")
    rest = read(client, f"{home}operations" + found_in(r'href="(\?after=[^"]*)" rel="next"', html))
    assert html.count('id="o-') == 50
    assert rest.count('id="o-') == 10


def test_each_is_said_in_a_sentence(signed_in, home, project, queue):
    since = database_now() - timedelta(hours=2)
    job = make_job(queue, "mail.send")
    begun(project, filter={"status": "queued", "job_type": "mail.send", "queue_id": queue.pk, "created_from": since})
    begun(project, ids=[job.pk])
    begun(project, "discard")
    html = read(signed_in("viewer"), f"{home}operations")

    assert f"Cancel all queued jobs of the type mail.send in {queue.name} since {since:%d %b %Y, %H:%M}" in html
    assert "Cancel selected jobs" in html
    assert "Discard all dead letters" in html


def test_how_far_it_is_and_what_the_dry_run_counted(signed_in, home, project, queue):
    make_jobs(queue, 4)
    one = begun(project, reason="rendered elsewhere")
    Operation.objects.filter(pk=one.pk).update(
        state="running", started_at=database_now(), matched=3, changed=1, skipped=1, failed=1, last_error="no room"
    )
    path = f"{home}operations/{one.pk}"
    html = read(signed_in("viewer"), path)

    assert "3 of 4" in html
    assert "3 looked at: 1 changed, 1 skipped, 1 failed" in html
    assert "4 jobs then" in html
    assert "no room" in html
    assert "rendered elsewhere" in html
    assert "data-live=" in html
    Operation.objects.filter(pk=one.pk).update(is_estimate_capped=True)
    assert "3 of at least 4" in read(signed_in("viewer"), path)
    Operation.objects.filter(pk=one.pk).update(state="completed", ended_at=database_now())
    html = read(signed_in("viewer"), path)
    assert "3 of 3" in html
    assert "data-live=" not in html  # what has ended is not asked for again
    assert "operations_abort" not in html


def test_an_abort_asks_first_and_tells_who_did_it(signed_in, home, project, queue, member):
    make_jobs(queue, 4)
    one = begun(project)
    path, client = f"{home}operations/{one.pk}", signed_in("member")
    assert f"{path}/abort" not in read(signed_in("viewer"), path)
    token = token_of(client.post(f"{path}/abort"))
    assert Operation.objects.get().state == "pending"
    assert client.post(f"{path}/abort", {"confirm_token": token}).url == path
    assert Operation.objects.get().state == "aborted"
    assert AuditEntry.objects.get(action="operation.abort").user == member
    html = client.post(f"{path}/abort", {"confirm_token": token}, follow=True).content.decode()
    assert "is-error" in html
    assert "aborted already" in html
    assert "operation.abort" in html


def test_filters_and_the_kinds_of_empty(signed_in, home, project, queue):
    client, path = signed_in("viewer"), f"{home}operations"
    assert "There was no operation yet" in read(client, path)
    assert "Nothing is under way" in read(client, f"{path}?show=unended")
    assert "No operation fits" in read(client, f"{path}?action=retry")
    begun(project)
    abort(begun(project, "retry").pk)

    def count(query):
        return read(client, f"{path}?{query}").count('id="o-')

    assert [count(q) for q in ("", "show=unended", "show=aborted", "show=completed", "action=retry")] == [2, 1, 1, 0, 1]
    assert count("show=aborted&action=cancel") == 0
    assert count("show=nonsense&action=%00&after=x") == 2


def test_those_of_other_projects_do_not_exist_here(signed_in, home, organization, queue):
    sister = make_queue()
    foreign = begun(sister.project)
    client = signed_in("owner")

    assert client.get(f"{home}operations/{foreign.pk}").status_code == 404
    assert client.post(f"{home}operations/{foreign.pk}/abort").status_code == 404
    assert 'id="o-' not in read(client, f"{home}operations")


@pytest.mark.parametrize("path", ["operations", "operations/{}"])
def test_hostile_texts_are_text(signed_in, home, project, queue, path):
    one = begun(project, reason=HOSTILE[:500], filter={"job_type": HOSTILE[:100]})
    Operation.objects.filter(pk=one.pk).update(last_error=HOSTILE[:500])
    html = read(signed_in("owner"), home + path.format(one.pk))

    assert "<svg onload" not in html
    assert "\u202e" not in html
