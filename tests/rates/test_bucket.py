"""Token buckets: refill, take, and never more than the rate, whoever asks at once."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from orgs.models import TokenBucket
from orgs.token_bucket import PURSE_S, Limit, empty_purses, forget_full_buckets, spend, take
from tests.processes import ROOT, database_url
from tests.threads import run_together

SLOW = Limit("t", 60)  # one token a second, sixty in a full bucket


def _pass(seconds: float) -> None:
    """Let time go by, for the buckets."""
    TokenBucket.objects.update(refilled_at=F("refilled_at") - timedelta(seconds=seconds))


def test_a_new_bucket_is_full_and_takes_are_counted(db):
    first, second = take(SLOW, "k", 10), take(SLOW, "k", 1)

    assert (first.is_allowed, first.left, first.full_in_s) == (True, 50, 10)
    assert (second.is_allowed, second.left) == (True, 49)


def test_it_refills_with_time_and_never_above_full(db):
    take(SLOW, "k", 60)
    _pass(30)
    assert take(SLOW, "k", 1).left == 29
    _pass(3_600)
    assert take(SLOW, "k", 1).left == 59


def test_who_is_refused_takes_nothing_and_hears_how_long(db):
    take(SLOW, "k", 55)

    refused = take(SLOW, "k", 20)

    assert (refused.is_allowed, refused.left) == (False, 5)
    assert 14 < refused.retry_after_s <= 15
    assert take(SLOW, "k", 5).is_allowed


def test_more_than_a_full_bucket_costs_a_full_one(db):
    assert take(SLOW, "k", 1_000).is_allowed
    assert not take(SLOW, "k", 1).is_allowed
    _pass(60)
    assert take(SLOW, "k", 1_000).is_allowed


def test_a_clock_that_went_back_gives_no_tokens(db):
    take(SLOW, "k", 60)
    _pass(-100)

    assert not take(SLOW, "k", 1).is_allowed


def test_buckets_do_not_mix(db):
    take(SLOW, "a", 60)

    assert take(SLOW, "b", 60).is_allowed
    assert take(Limit("other", 60), "a", 60).is_allowed


def test_a_purse_spends_what_was_taken_and_mostly_asks_nobody(db):
    limit = Limit("t", 6_000)

    with CaptureQueriesContext(connection) as asked:
        answers = [spend(limit, "k", 1) for _ in range(600)]

    assert all(answer.is_allowed for answer in answers)
    assert len(asked) <= 6
    assert answers[-1].left == pytest.approx(5_400, abs=100)
    assert answers[0].left - answers[1].left == 1


def test_what_lies_too_long_in_a_purse_is_thrown_away(db, monkeypatch):
    limit = Limit("t", 6_000)
    spend(limit, "k", 1)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + PURSE_S + 0.1)

    with CaptureQueriesContext(connection) as asked:
        spend(limit, "k", 1)

    assert len(asked) == 1


def test_several_purses_together_never_spend_more_than_the_bucket_held(db):
    spent = 0
    for _ in range(50):  # each time as if in another process
        empty_purses()
        spent += spend(Limit("t", 600), "k", 1).is_allowed

    assert spent == 50
    empty_purses()
    while spend(Limit("t", 600), "k", 1).is_allowed:
        spent += 1
    assert spent <= 601


def test_a_refused_spend_keeps_the_purse(db):
    limit = Limit("t", 60)
    assert spend(limit, "k", 50).is_allowed
    assert not spend(limit, "k", 50).is_allowed

    assert spend(limit, "k", 9).is_allowed


def test_unused_buckets_are_forgotten(db):
    take(SLOW, "old", 1)
    _pass(3 * 86_400)
    take(SLOW, "new", 1)

    assert forget_full_buckets(10) == 1
    assert TokenBucket.objects.get().key == "t:new"


@pytest.mark.django_db(transaction=True)
def test_a_new_bucket_made_by_many_at_once_is_one_bucket():
    answers = run_together([lambda: take(SLOW, "k", 10)] * 12)

    assert sum(answer.is_allowed for answer in answers) == 6


@pytest.mark.django_db(transaction=True)
def test_threads_never_get_more_than_the_rate():
    limit, began = Limit("t", 1_200), time.monotonic()  # twenty a second

    def work() -> int:
        return sum(take(limit, "k", 3).is_allowed for _ in range(150)) * 3

    got = sum(run_together([work] * 8))

    passed_s = time.monotonic() - began
    assert got <= limit.burst + limit.rate * passed_s + 1
    assert got >= limit.burst - 3


SPENDER = """
import django, sys, time
django.setup()
from orgs.token_bucket import Limit, spend
limit, got, until = Limit("t", 1200), 0, time.monotonic() + 2
while time.monotonic() < until:
    got += spend(limit, "k", 1).is_allowed
print(got)
"""


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
def test_processes_with_purses_never_get_more_than_the_rate():
    env = {
        "DJANGO_SETTINGS_MODULE": "scheduler_project.settings",
        "APP_DATABASE_URL": database_url(),
        "PYTHONPATH": str(ROOT),
    }
    TokenBucket.objects.create(key="t:k", tokens=1_200, refilled_at=Now())
    created = time.monotonic()

    spenders = [
        subprocess.Popen([sys.executable, "-c", SPENDER], env=env, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    got = sum(int(spender.communicate(timeout=60)[0]) for spender in spenders)

    limit, passed_s = Limit("t", 1_200), time.monotonic() - created
    assert limit.burst <= got + 4 * 24
    assert got <= limit.burst + limit.rate * passed_s
