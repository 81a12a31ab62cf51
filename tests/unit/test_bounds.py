"""The bounds of queues and policies agree with the tables."""

from __future__ import annotations

import math

import pytest

from queues.bounds import POLICY_BOUNDS, QUEUE_BOUNDS, check_policy, check_queue
from queues.models import Queue, RetryPolicy
from scheduler_project.lib.errors import ValidationFailed
from tests.factories import make_project


def test_both_ends_are_allowed_and_what_lies_beyond_is_not():
    for name, bound in POLICY_BOUNDS.items():
        check_policy({name: bound.least})
        check_policy({name: bound.greatest})
        for value in (bound.least - 1, bound.greatest + 1, math.nan, math.inf, -math.inf, 10**400):
            with pytest.raises(ValidationFailed) as refused:
                check_policy({name: value})
            assert refused.value.details[0].field == name


def test_all_that_is_wrong_is_named():
    with pytest.raises(ValidationFailed) as refused:
        check_queue({"priority": 10**9, "max_concurrency": 0, "rate_limit": 1})

    assert [detail.field for detail in refused.value.details] == ["priority", "max_concurrency", "rate_period_secs"]


@pytest.mark.parametrize("end", ["least", "greatest"])
def test_the_tables_take_what_the_bounds_allow(db, end):
    project = make_project()
    settings = {name: int(getattr(bound, end)) for name, bound in QUEUE_BOUNDS.items()}
    Queue.objects.create(project=project, name=end, **settings)
    RetryPolicy.objects.create(project=project, name=end, **{n: getattr(b, end) for n, b in POLICY_BOUNDS.items()})
