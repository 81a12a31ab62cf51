"""Of two who do the same thing at once, one does it and the other is told."""

from __future__ import annotations

import pytest

from accounts.models import RefreshFamily
from accounts.services import register_user
from accounts.tokens import BadToken, TokenPair, issue, rotate
from dlq.models import DeadLetter
from jobs.decisions import Failed
from jobs.lease import Ending
from jobs.lifecycle.settle import settle
from jobs.models import Job
from jobs.services.closing import delete_project, delete_queue
from jobs.services.dead_letters import resolve_letter
from orgs.models import Organization
from orgs.services import create_organization
from queues.models import Queue
from queues.services import create_queue
from scheduler_project.lib.errors import Conflict
from scheduler_project.lib.ids import uuid7
from tests.factories import claim_one, make_job, make_project
from tests.personas import make_user
from tests.races import at_once


@pytest.fixture
def queue(committed_queue):
    return committed_queue


def test_one_refresh_token_is_exchanged_once(transactional_db):
    refresh = issue(make_user()).refresh

    outcomes = at_once(*[lambda: rotate(refresh)] * 6)

    pairs = [outcome for outcome in outcomes if isinstance(outcome, TokenPair)]
    assert len(pairs) == 1
    assert all(isinstance(outcome, BadToken) for outcome in outcomes if outcome is not pairs[0])
    assert RefreshFamily.objects.get().revoked_at is not None
    assert isinstance(at_once(lambda: rotate(pairs[0].refresh))[0], BadToken)


def test_one_address_is_registered_once(transactional_db):
    outcomes = at_once(*[lambda: register_user(email="a@example.com", password="one good password")] * 4)

    assert sum(not isinstance(outcome, Exception) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3


def test_one_queue_gets_a_name(transactional_db):
    project = make_project()

    outcomes = at_once(*[lambda: create_queue(project, name="q")] * 4)

    assert sum(isinstance(outcome, Queue) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3


def test_organizations_of_one_name_get_different_slugs(transactional_db):
    user = make_user()

    outcomes = at_once(*[lambda: create_organization(name="Acme", by=user.pk)] * 4)

    assert all(isinstance(outcome, Organization) for outcome in outcomes), outcomes
    assert len({outcome.slug for outcome in outcomes}) == 4


@pytest.mark.parametrize("is_purged", [False, True])
@pytest.mark.parametrize("actions", [("requeued",) * 4, ("requeued", "discarded") * 2], ids=["same", "mixed"])
def test_a_letter_is_decided_once(queue, actions, is_purged):
    make_job(queue, max_attempts=1)
    settle([Ending.of(claim_one(queue), Failed("x"), str(uuid7()))])
    letter = DeadLetter.objects.select_related("queue").get()
    if is_purged:
        Job.objects.all().delete()

    outcomes = at_once(*[lambda action=action: resolve_letter(letter, action, by=None) for action in actions])

    done = [action for action, outcome in zip(actions, outcomes, strict=True) if not isinstance(outcome, Exception)]
    assert len(done) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3
    letter.refresh_from_db()
    assert letter.resolution_action == done[0]
    assert Job.objects.filter(status="queued").count() == (done == ["requeued"])


def test_a_queue_is_deleted_once(queue):
    outcomes = at_once(*[lambda: delete_queue(queue)] * 4)

    assert outcomes.count(None) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3


def test_a_project_is_deleted_once_and_never_halfway(queue):
    outcomes = at_once(*[lambda: delete_project(queue.project)] * 3, lambda: delete_queue(queue))

    assert all(outcome is None or isinstance(outcome, Conflict) for outcome in outcomes), outcomes
    queue.refresh_from_db()
    queue.project.refresh_from_db()
    assert queue.deleted_at is not None
