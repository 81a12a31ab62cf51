"""Pages of batches: how far each is, what failed in it, its callbacks, closing and cancelling."""

from __future__ import annotations

import re

import pytest

from jobs.decisions import Failed, Succeeded
from jobs.lifecycle.submit import NewJob
from jobs.models import JobBatch
from jobs.services.batches import add_jobs, close_batch, create_batch, fold_batches
from orgs.models import AuditEntry
from tests.factories import claim_from, end, make_project, make_queue, status_of
from tests.web.forms import found_in, token_of
from tests.web.test_pages import HOSTILE

BUDGET = 12


def read(client, path):
    return client.get(path).content.decode()


def filled(queue, name="night", count=4, **fields):
    batch = create_batch(queue.project_id, name, **fields)
    return batch, add_jobs(batch.pk, queue, [NewJob(job_type="invoice", max_attempts=1) for _ in range(count)])


def finish(queue, *verdicts):
    for verdict in verdicts:
        [lease] = claim_from(queue)
        end(lease, verdict)


@pytest.fixture
def page(home):
    return f"{home}batches"


def test_the_pages_stay_in_their_budget(signed_in, page, queue, django_assert_max_num_queries):
    callbacks = {
        kind: {"queue_id": str(queue.pk), "job_type": "noop"} for kind in ("on_success", "on_end", "on_failure")
    }
    for number in range(55):
        batch, _ = filled(queue, f"b{number}", 1, callbacks=callbacks)
    for number in range(20):
        filled(queue, f"c{number}", 1, parent_id=batch.pk)
    finish(queue, *[Failed("no")] * 60)
    client = signed_in("member")
    for path in (page, f"{page}/{batch.pk}"):
        with django_assert_max_num_queries(BUDGET):
            html = read(client, path)
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html)
    html = read(client, page)
    assert html.count('id="b-') == 50  # those inside others are on the page of theirs
    assert read(client, page + found_in(r'href="(\?after=[^"]*)" rel="next"', html)).count('id="b-') == 5


def test_a_batch_tells_how_far_it_is_and_what_failed(signed_in, page, queue):
    batch, jobs = filled(queue)
    finish(queue, Succeeded("null"), Failed("the printer is on fire"))
    [lease] = claim_from(queue)
    path = f"{page}/{batch.pk}"
    html = read(signed_in("viewer"), path)

    assert "Of 4 jobs 1 completed, 1 failed, 0 were cancelled, 2 have not ended" in html
    assert "50 % of 4 jobs ended" in html
    assert "the printer is on fire" in html
    assert f"jobs/{lease.job_id}" in html
    assert f"jobs/{jobs[3].id}" not in html
    assert "data-live=" in html
    assert "/cancel" not in html
    end(lease, Succeeded("null"))
    finish(queue, Succeeded("null"))
    close_batch(batch.pk)
    fold_batches()
    html = read(signed_in("viewer"), path)
    assert "100 % of 4 jobs ended" in html
    assert "data-live=" not in html


def test_callbacks_tell_whether_their_moment_came(signed_in, page, queue):
    other = make_queue(queue.project)
    callback = {"queue_id": str(other.pk), "job_type": "tell", "payload": {}}
    kinds = ("on_success", "on_end", "on_failure")
    batch, _ = filled(queue, count=1, callbacks=dict.fromkeys(kinds, callback))

    def words():
        html = read(signed_in("viewer"), f"{page}/{batch.pk}").split("<h2>Callbacks</h2>")[1]
        return re.findall(r"<span>(\w+)</span></span><span class=\"what\"><span class=\"name\"><bdi>tell", html)

    assert words() == ["Waits", "Waits", "Waits"]
    finish(queue, Failed("no"))
    close_batch(batch.pk)
    fold_batches()
    assert words() == ["Never", "Submitted", "Submitted"]
    JobBatch.objects.filter(pk=batch.pk).update(callback_error="on_end: the queue is full")
    assert words() == ["Never", "Refused", "Submitted"]
    assert "the queue is full" in read(signed_in("viewer"), f"{page}/{batch.pk}")


def test_closing_and_cancelling_ask_first(signed_in, page, queue, member):
    batch, jobs = filled(queue)
    _, inner_jobs = filled(queue, "inner", 1, parent_id=batch.pk)
    client, path = signed_in("member"), f"{page}/{batch.pk}"
    token = token_of(client.post(f"{path}/close"))
    assert client.post(f"{path}/close", {"confirm_token": token}).url == path
    batch.refresh_from_db()
    assert batch.status == "running"
    asked = client.post(f"{path}/cancel")
    assert "5 of its jobs have not ended" in asked.content.decode()
    assert "1 jobs" in read(client, path)  # of the batch inside it
    assert status_of(jobs[0]) == "queued"
    client.post(f"{path}/cancel", {"confirm_token": token_of(asked)})
    assert {status_of(job) for job in (*jobs, *inner_jobs)} == {"cancelled"}
    fold_batches()
    assert "cancelled already" in client.post(f"{path}/cancel", follow=True).content.decode()
    assert list(AuditEntry.objects.order_by("id").values_list("action", "user")) == [
        ("batch.close", member.pk),
        ("batch.cancel", member.pk),
    ]


def test_filters_and_the_kinds_of_empty(signed_in, page, queue):
    client = signed_in("viewer")
    assert "There are no batches yet" in read(client, page)
    filled(queue, "one")
    batch, _ = filled(queue, "two")
    close_batch(batch.pk)

    def count(query):
        return read(client, f"{page}?{query}").count('id="b-')

    assert [count(query) for query in ("", "status=open", "status=running", "q=TW", "status=open&q=tw")] == [
        2, 1, 1, 1, 0,
    ]  # fmt: skip
    assert count("status=zzz&q=%00&after=1") == 2
    assert "No batch fits" in read(client, f"{page}?q=zzz")


def test_those_of_other_projects_do_not_exist_here(signed_in, page, organization, queue):
    sister, _ = filled(make_queue(make_project(organization)), "theirs")
    client = signed_in("owner")
    assert "theirs" not in read(client, page)
    assert client.get(f"{page}/{sister.pk}").status_code == 404
    assert client.post(f"{page}/{sister.pk}/cancel").status_code == 404
    assert client.post(f"{page}/{sister.pk}/close").status_code == 404


def test_hostile_names_are_text(signed_in, page, queue):
    batch, _ = filled(queue, count=1)
    JobBatch.objects.filter(pk=batch.pk).update(name=HOSTILE[:200], callback_error=HOSTILE[:500])
    finish(queue, Failed(HOSTILE))
    for path in (page, f"{page}/{batch.pk}"):
        html = read(signed_in("owner"), path)
        assert "<svg onload" not in html
        assert "\u202e" not in html
