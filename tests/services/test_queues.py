"""Changing queues through their service."""

from __future__ import annotations

import pytest

from queues.selectors import find_queue_by_path
from queues.services import create_queue, create_retry_policy, pause_queue, update_queue
from scheduler_project.lib.errors import Conflict, ValidationFailed
from tests.factories import make_project, make_queue, path_of


def test_a_queue_can_be_changed(queue, project):
    policy = create_retry_policy(project, name="p")

    changed = update_queue(queue, name="new", max_concurrency=4, default_retry_policy_id=policy.pk)

    assert (changed.name, changed.max_concurrency, changed.default_retry_policy_id) == ("new", 4, policy.pk)
    assert changed.updated_at > changed.created_at


def test_a_change_is_checked_like_a_new_queue(queue, project):
    make_queue(project, name="taken")
    foreign = create_retry_policy(make_project(), name="p")

    with pytest.raises(Conflict):
        update_queue(queue, name="taken")
    for change in ({"max_concurrency": 0}, {"rate_limit": 5}, {"default_retry_policy_id": foreign.pk}, {"name": ""}):
        with pytest.raises(ValidationFailed):
            update_queue(queue, **change)
    with pytest.raises(TypeError):
        update_queue(queue, is_paused=True)


def test_a_rate_is_given_and_taken_as_a_pair(queue):
    update_queue(queue, rate_limit=5, rate_period_secs=60)
    update_queue(queue, rate_limit=6)

    assert (queue.rate_limit, queue.rate_period_secs) == (6, 60)
    update_queue(queue, rate_limit=None, rate_period_secs=None)
    assert queue.rate_limit is None


def test_a_deleted_queue_can_not_be_changed(queue):
    from jobs.services.closing import delete_queue

    delete_queue(queue)

    for change in (lambda: pause_queue(queue), lambda: update_queue(queue, priority=1), lambda: delete_queue(queue)):
        with pytest.raises(Conflict):
            change()


def test_a_queue_is_found_by_its_path(queue, project):
    twin = create_queue(make_project(project.organization), name=queue.name)

    assert find_queue_by_path(path_of(queue)) == queue
    assert find_queue_by_path(path_of(twin)) == twin
    for path in (queue.name, f"x/{path_of(queue)}", f"{path_of(queue)}/", "", "//", f"{path_of(queue)}x"):
        assert find_queue_by_path(path) is None


def test_a_path_is_normalised_as_names_are(project):
    queue = create_queue(project, name="caf\u00e9")

    assert find_queue_by_path(path_of(queue).replace("\u00e9", "e\u0301")) == queue
