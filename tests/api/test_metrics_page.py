"""/metrics and /api/stats/queues."""

from __future__ import annotations

import re

import pytest
from django.db import OperationalError
from django.test import Client

from jobs.decisions import Succeeded
from jobs.selectors import metrics
from jobs.services.statistics import fold_all, look_at_all_queues
from scheduler_project import metrics_view
from tests.factories import claim_one, end, make_jobs, make_project, path_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(metrics_view, "_DATABASE", metrics.DatabaseMetrics())
    monkeypatch.setattr(metrics, "TTL_S", -1.0)


def page(**headers: str) -> str:
    answer = Client().get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.content[:300]
    return answer.content.decode()


def test_series_are_as_many_as_queues_and_types_not_as_jobs(queue):
    def series() -> int:
        fold_all()
        look_at_all_queues()
        return sum(not line.startswith("#") for line in page().splitlines())

    [first] = make_jobs(queue, 1)
    end(claim_one(queue), Succeeded())
    few = series()
    make_jobs(queue, 50)

    assert series() == few
    assert str(first.id) not in page()
    assert f'jobs_created_total{{job_type="noop",queue="{path_of(queue)}"}} 51.0' in page()


def test_an_outage_is_said_not_suffered(queue, monkeypatch):
    def away() -> None:
        raise OperationalError("away")

    monkeypatch.setattr(metrics, "_read", away)

    assert re.search(r"^scheduler_database_up 0.0$", page(), re.M)


def test_a_token_is_asked_for_if_one_is_set(db, settings):
    settings.METRICS_TOKEN = "s" * 32

    assert Client().get("/metrics").status_code == 401
    assert Client().get("/metrics", headers={"Authorization": "Bearer ä"}).status_code == 401
    assert "scheduler_database_up 1.0" in page(Authorization=f"Bearer {'s' * 32}")


def test_an_autoscaler_reads_its_queues(as_machine, as_owner, queue, django_assert_max_num_queries):
    make_jobs(queue, 3)
    fold_all()
    look_at_all_queues()

    with django_assert_max_num_queries(8):
        [found] = as_machine.get("stats/queues").json()["queues"]

    assert (found["path"], found["ready"], found["limit"], found["capacity"]) == (path_of(queue), 3, None, None)
    assert found["arrivals_per_s"] > 0
    assert found["oldest_age_s"] >= 0
    assert as_owner.get(f"stats/queues?project_id={queue.project_id}").json()["queues"][0]["ready"] == 3
    assert as_owner.get(f"stats/queues?project_id={make_project().pk}").status_code == 404
    assert as_owner.get("stats/queues?project_id=x").status_code == 400
