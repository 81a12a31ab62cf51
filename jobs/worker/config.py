"""What a worker process is told at its start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from django.conf import settings


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Seats, queues and times of one worker.

    Attributes:
        queue_ids: the queues it serves, None for all.
        queue_names: the same as people wrote them, for show.
        seats: handlers that run at once.
        mode: "serve" until told to stop; "once" for one job; "drain" until no queued job is left.
        metrics_port: None takes APP_METRICS_PORT, 0 serves no metrics.
    """

    queue_ids: tuple[str, ...] | None = None
    queue_names: tuple[str, ...] = ()
    seats: int = settings.WORKER_MAX_CONCURRENCY
    poll_s: float = settings.WORKER_POLL_INTERVAL_MS / 1000
    heartbeat_s: float = settings.WORKER_HEARTBEAT_INTERVAL_SECS
    grace_s: float = settings.WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS
    cancel_grace_s: float = settings.WORKER_CANCEL_GRACE_SECS
    mode: Literal["serve", "once", "drain"] = "serve"
    metrics_port: int | None = 0
