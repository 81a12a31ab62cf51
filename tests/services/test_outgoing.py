"""Events for the outside: none is lost, none is told twice, and deliveries tell nothing of themselves."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from jobs.decisions import Discarded, Failed, Succeeded, Verdict
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.lifecycle.submit import NewJob
from jobs.models import NOTICES_QUEUE, EventSubscription, Job, OutgoingEvent
from jobs.scheduler.duties import outgoing as duty
from jobs.services.batches import add_jobs, close_batch, create_batch, fold_batches
from jobs.services.outgoing import deliver, send_test
from jobs.services.subscriptions import create_subscription, delete_subscription, update_subscription
from queues.models import Queue
from scheduler_project.lib.errors import Conflict, NotFound, ValidationFailed
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_from, claim_one, end, job_in, make_job, make_jobs, make_project, make_queue

pytestmark = pytest.mark.django_db

URL = "https://hooks.example.com/in"
ALL = ["job.dead_letter", "job.failed", "batch.finished"]


def subscribe(project, types=None, **fields):
    return create_subscription(project, **{"name": "ops", "url": URL, "types": types or ALL, "by": None, **fields})


def bodies(project):
    """What is on its way, the oldest first."""
    jobs = Job.objects.filter(project_id=project.pk, queue__name=NOTICES_QUEUE).order_by("id")
    return [job.payload["body"] for job in jobs]


def statements_of_a_settle(queue, count: int = 5) -> list[str]:
    make_jobs(queue, count, max_attempts=1)
    leases = claim_from(queue, count)
    endings = [
        Ending.of(lease, Failed("no") if n else Succeeded(), str(uuid7()), 1.0) for n, lease in enumerate(leases)
    ]
    with (
        transaction.atomic(),
        CaptureQueriesContext(
            connection,
        ) as seen,
    ):
        settle(endings)
    return [query["sql"][:40] for query in seen.captured_queries]


def test_the_end_of_an_attempt_takes_as_many_statements_with_a_subscription_as_without(queue):
    without = statements_of_a_settle(queue)
    subscribe(queue.project)

    assert statements_of_a_settle(queue) == without
    assert 1 <= len(without) <= 6
    assert OutgoingEvent.objects.count() == 4


def test_a_batch_in_which_nothing_went_wrong_is_settled_by_the_statement_without_events(queue):
    """As it was before there were any, whether somebody subscribed or not."""
    subscribe(queue.project)
    make_jobs(queue, 3, max_attempts=2)
    leases = claim_from(queue, 3)
    verdicts: list[Verdict] = [Succeeded(), Succeeded(), Failed("once more")]
    with transaction.atomic(), CaptureQueriesContext(connection) as seen:
        settle([Ending.of(lease, verdict, str(uuid7()), 1.0) for lease, verdict in zip(leases, verdicts, strict=True)])

    assert "update jobs" in (text := " ".join(query["sql"] for query in seen.captured_queries))
    assert "outgoing_events" not in text


def test_nothing_is_written_where_nobody_asked(queue):
    subscribe(make_project())
    update_subscription(subscribe(queue.project), is_active=False)

    job_in("dead_letter", queue)

    assert not OutgoingEvent.objects.exists()


def test_a_dead_letter_and_a_given_up_job_are_told_with_what_went_wrong(queue):
    subscribe(queue.project)
    dead = job_in("dead_letter", queue).job
    given_up = job_in("failed", make_queue(queue.project)).job
    job_in("completed", queue)

    assert deliver(limit=10) == 2

    first, second = bodies(queue.project)
    assert (first["type"], second["type"]) == ("job.dead_letter", "job.failed")
    assert first["data"]["job_id"] == str(dead.pk)
    assert first["data"]["error"] == "boom"
    assert first["data"]["attempts"] == 1
    assert second["data"]["job_id"] == str(given_up.pk)
    assert not OutgoingEvent.objects.exists()


def test_a_retry_is_no_event(queue):
    subscribe(queue.project)
    make_job(queue, max_attempts=2)
    end(claim_one(queue), Failed("once more"))

    assert not OutgoingEvent.objects.exists()


def test_each_subscription_gets_what_it_asked_for_and_no_other_project_anything(queue):
    subscribe(queue.project, ["job.failed"], name="a", url=f"{URL}/a")
    subscribe(queue.project, ["job.dead_letter"], name="b", url=f"{URL}/b")
    stranger = make_project()
    subscribe(stranger, ["job.dead_letter"])
    job_in("dead_letter", queue)

    deliver(limit=10)

    [job] = Job.objects.filter(queue__name=NOTICES_QUEUE)
    assert (job.project_id, job.payload["url"], job.job_type) == (queue.project_id, f"{URL}/b", "http.webhook")


def test_two_deliverers_make_one_job(queue):
    subscribe(queue.project)
    job_in("dead_letter", queue)
    event = OutgoingEvent.objects.get()

    deliver(limit=10)
    event.save(force_insert=True)  # as if the first had died before it let the event go
    deliver(limit=10)

    assert len(bodies(queue.project)) == 1


def test_what_can_not_be_delivered_now_stays(queue, monkeypatch):
    subscribe(queue.project)
    job_in("dead_letter", queue)
    monkeypatch.setattr("jobs.services.outgoing.send", lambda *_: (_ for _ in ()).throw(Conflict("not now")))
    assert deliver(limit=10) == 0
    monkeypatch.undo()

    assert duty.duty(1.0).run() is None
    assert len(bodies(queue.project)) == 1


def test_a_delivery_that_is_given_up_is_no_event_and_its_subscription_says_why(queue):
    """The circle that must not close: an event about a delivery would be a delivery."""
    subscription = subscribe(queue.project, ["job.dead_letter", "job.failed"])
    job_in("dead_letter", queue)
    deliver(limit=10)
    notices = Queue.objects.get(name=NOTICES_QUEUE)
    Job.objects.filter(queue=notices).update(max_attempts_override=1)
    end(claim_one(notices), Failed("bad_status: the target answered 500"))
    assert OutgoingEvent.objects.count() == 1

    deliver(limit=10)

    assert Job.objects.filter(queue=notices).count() == 1
    assert not OutgoingEvent.objects.exists()
    subscription.refresh_from_db()
    assert subscription.last_error == "bad_status: the target answered 500"
    assert subscription.is_active


def test_an_address_that_says_it_is_gone_is_left_alone_until_somebody_switches_it_on(queue):
    subscription = subscribe(queue.project)
    job_in("dead_letter", queue)
    deliver(limit=10)
    Job.objects.filter(queue__name=NOTICES_QUEUE).update(max_attempts_override=1)
    end(claim_one(Queue.objects.get(name=NOTICES_QUEUE)), Discarded("bad_status: the target answered 410"))

    deliver(limit=10)

    subscription.refresh_from_db()
    assert not subscription.is_active
    update_subscription(subscription, is_active=True)
    assert subscription.last_error == ""


def test_an_ended_batch_is_told_with_its_counts(queue):
    subscribe(queue.project)
    batch = create_batch(queue.project_id, "night")
    add_jobs(batch.pk, queue, [NewJob(job_type="noop")])
    close_batch(batch.pk)
    end(claim_one(queue), Succeeded())

    fold_batches()
    fold_batches()
    deliver(limit=10)

    [body] = bodies(queue.project)
    assert body["type"] == "batch.finished"
    assert (body["data"]["status"], body["data"]["total"], body["data"]["completed"]) == ("completed", 1, 1)


def test_a_test_delivery_goes_to_that_one_only(queue):
    subscription = subscribe(queue.project)
    subscribe(queue.project, name="other", url=f"{URL}/other")

    job_id = send_test(subscription)

    [body] = bodies(queue.project)
    assert body["type"] == "webhook.test"
    assert Job.objects.get(pk=job_id).payload["url"] == URL


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"url": "ftp://x"}, "url"),
        ({"url": "http://127.0.0.1/"}, "url"),
        ({"types": []}, "types"),
        ({"types": ["job.made_up"]}, "types"),
        ({"name": " "}, "name"),
    ],
)
def test_a_bad_field_is_named(project, fields, named):
    with pytest.raises(ValidationFailed) as refused:
        create_subscription(project, **{"name": "ops", "url": URL, "types": ALL, "by": None, **fields})
    assert refused.value.details[0].field == named


def test_names_are_taken_once_and_there_is_an_end(project, monkeypatch):
    first = subscribe(project)
    with pytest.raises(Conflict):
        subscribe(project)
    monkeypatch.setattr("jobs.services.subscriptions.MOST", 1)
    with pytest.raises(Conflict):
        subscribe(project, name="more")
    delete_subscription(first)
    with pytest.raises(NotFound):
        delete_subscription(first)
    assert not EventSubscription.objects.exists()
