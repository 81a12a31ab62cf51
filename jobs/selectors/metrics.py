"""What /metrics of the web process reads from the database when it is scraped: exact, whoever did the work and died.

The counters come from the sums of all time, so restarts and any number of processes neither double nor lose them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from jobs.histogram import BUCKETS, upper_bound_ms
from jobs.models import CircuitBreaker, Worker
from jobs.selectors.queue_stats import QueueNow, counted_age_s, queues_now, totals
from scheduler_project.lib import logs

log = logs.get(__name__)

#: Several scrapers within this time are given the same answer.
TTL_S = 2.0
#: Of the buckets that are kept, every fourth is shown: 1 ms, 4 ms, 16 ms … 70 minutes.
SHOWN = range(0, BUCKETS - 1, 4)
_QUEUE_TYPE = ["queue", "job_type"]


class DatabaseMetrics(Collector):
    """Read at scrape time and kept for a moment. Without a database there is one metric, which says so."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = float("-inf")
        self._metrics: list[Metric] = []

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not ask the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics, at most TTL_S old."""
        is_up = 1
        with self._lock:
            if time.monotonic() - self._at > TTL_S:
                try:
                    self._metrics, self._at = list(_read()), time.monotonic()
                except Exception as error:  # noqa: BLE001 - boundary: an outage must not take /metrics down
                    log.warning("metrics_not_read", error=str(error).strip())
                    self._metrics, self._at, is_up = [], float("-inf"), 0
            metrics = list(self._metrics)
        yield GaugeMetricFamily("scheduler_database_up", "1 if the database answered this scrape.", value=is_up)
        yield from metrics


def _read() -> Iterator[Metric]:
    queues = queues_now(None)
    yield from _queue_gauges(queues)
    yield from _counters(queues)
    yield from _processes()


def _queue_gauges(queues: list[QueueNow]) -> Iterator[Metric]:
    depth = GaugeMetricFamily("queue_depth", "Jobs now, by status.", labels=["queue", "status"])
    dead = GaugeMetricFamily("dlq_size", "Open dead letters.", labels=["queue"])
    oldest = GaugeMetricFamily("queue_oldest_job_age_seconds", "Age of the oldest claimable job.", labels=["queue"])
    for queue in queues:
        for status, count in (
            ("queued", queue.ready), ("scheduled", queue.scheduled),
            ("claimed", queue.claimed), ("running", queue.running),
        ):  # fmt: skip
            depth.add_metric([queue.path, status], count)
        dead.add_metric([queue.path], queue.dead_letters)
        oldest.add_metric([queue.path], queue.oldest_age_s or 0.0)
    yield from (depth, dead, oldest)
    age_s = counted_age_s()
    if age_s is not None:
        yield GaugeMetricFamily("queue_stats_age_seconds", "How old the counts of queues are.", value=age_s)


def _counters(queues: list[QueueNow]) -> Iterator[Metric]:
    created = CounterMetricFamily("jobs_created", "Jobs submitted.", labels=_QUEUE_TYPE)
    completed = CounterMetricFamily("jobs_completed", "Attempts that succeeded.", labels=_QUEUE_TYPE)
    failed = CounterMetricFamily(
        "jobs_failed", "Attempts that failed or were lost; terminal: no retry.", labels=[*_QUEUE_TYPE, "terminal"]
    )
    cancelled = CounterMetricFamily("jobs_cancelled", "Jobs that ended as cancelled.", labels=_QUEUE_TYPE)
    expired = CounterMetricFamily(
        "lease_expirations", "Attempts that ended because their lease ran out.", labels=["queue"]
    )
    waits = HistogramMetricFamily("job_wait_seconds", "From due to claimed.", labels=_QUEUE_TYPE)
    runs = HistogramMetricFamily("job_execution_duration_seconds", "How long handlers ran.", labels=_QUEUE_TYPE)
    paths = {queue.queue_id: queue.path for queue in queues}
    lost = dict.fromkeys(paths.values(), 0)
    for (queue_id, job_type), sums in totals().items():
        if (path := paths.get(queue_id)) is None:
            continue  # the queue was deleted
        labels = [path, job_type]
        created.add_metric(labels, sums.created)
        completed.add_metric(labels, sums.completed)
        failed.add_metric([*labels, "false"], sums.retried)
        failed.add_metric([*labels, "true"], sums.failed + sums.expired - sums.retried)
        cancelled.add_metric(labels, sums.cancelled)
        lost[path] += sums.expired
        waits.add_metric(labels, _shown(sums.wait_histogram), sums.wait_ms / 1000)
        runs.add_metric(labels, _shown(sums.run_histogram), sums.run_ms / 1000)
    for path, count in lost.items():
        expired.add_metric([path], count)
    yield from (created, completed, failed, cancelled, expired, waits, runs)


def _shown(histogram: list[int]) -> list[tuple[str, float]]:
    bounds: list[tuple[str, float]] = [
        (str(upper_bound_ms(bucket) / 1000), float(sum(histogram[: bucket + 1]))) for bucket in SHOWN
    ]
    return [*bounds, ("+Inf", float(sum(histogram)))]


def _processes() -> Iterator[Metric]:
    """Workers that reach us over HTTP serve no metrics of their own; ours do."""
    up = GaugeMetricFamily("worker_up", "1 for each live worker over HTTP.", labels=["worker_id"])
    alive = Worker.objects.filter(status__in=[Worker.Status.ACTIVE, Worker.Status.DRAINING])
    for id_ in alive.exclude(project=None).values_list("id", flat=True):
        up.add_metric([str(id_)], 1)
    breakers = GaugeMetricFamily("circuit_breakers", "Circuit breakers by state.", labels=["state"])
    for state in CircuitBreaker.State.values:
        breakers.add_metric([state], CircuitBreaker.objects.filter(state=state).count())
    yield from (up, breakers)
