"""What was done, counted: increments as they are written, what they add up to, and how each queue is now.

No foreign keys: an increment is written with the work it counts and must not be refused, and what a queue has done
stays true when it is gone (ADR 19).
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q


class JobStatDelta(models.Model):
    """An increment, written in the transaction of the work it counts. The leader folds it and deletes it."""

    id = models.BigAutoField(primary_key=True)
    project_id = models.UUIDField()
    queue_id = models.UUIDField()
    job_type = models.CharField(max_length=200)
    at = models.DateTimeField()
    created = models.IntegerField(db_default=0)
    started = models.IntegerField(db_default=0)
    completed = models.IntegerField(db_default=0)
    failed = models.IntegerField(db_default=0)
    retried = models.IntegerField(db_default=0)
    dead = models.IntegerField(db_default=0)
    cancelled = models.IntegerField(db_default=0)
    expired = models.IntegerField(db_default=0)
    waits_ms = ArrayField(models.FloatField(), null=True)
    runs_ms = ArrayField(models.FloatField(), null=True)

    class Meta:
        db_table = "job_stat_deltas"

    def __str__(self) -> str:
        return f"{self.job_type} at {self.at}"


#: The sums of a whole project stand under this queue, and under no job type.
WHOLE_PROJECT = UUID(int=0)


class JobStat(models.Model):
    """Sums of one queue and job type over a minute, an hour, a day, or all time; histograms as in jobs.histogram.

    And the sums of whole projects, see WHOLE_PROJECT: added to the others they would count everything twice.
    """

    pk = models.CompositePrimaryKey("project_id", "grain", "at", "queue_id", "job_type")
    project_id = models.UUIDField()
    queue_id = models.UUIDField()
    job_type = models.CharField(max_length=200)
    grain = models.CharField(max_length=6)
    at = models.DateTimeField(help_text="When the time it stands for began.")
    created = models.BigIntegerField()
    started = models.BigIntegerField()
    completed = models.BigIntegerField()
    failed = models.BigIntegerField()
    retried = models.BigIntegerField()
    dead = models.BigIntegerField()
    cancelled = models.BigIntegerField()
    expired = models.BigIntegerField()
    wait_ms = models.FloatField(help_text="Sum of all waits.")
    run_ms = models.FloatField(help_text="Sum of all runs.")
    wait_histogram = ArrayField(models.BigIntegerField())
    run_histogram = ArrayField(models.BigIntegerField())

    class Meta:
        db_table = "job_stats"
        indexes = [models.Index(fields=["grain", "at"], name="job_stats_by_age")]
        constraints = [
            models.CheckConstraint(condition=Q(grain__in=["minute", "hour", "day", "all"]), name="job_stats_grain")
        ]

    def __str__(self) -> str:
        return f"{self.job_type} {self.grain} {self.at}"


class QueueStat(models.Model):
    """How a queue was at ``as_of``. Counts end at a ceiling; ``is_capped`` says that one did."""

    pk = models.CompositePrimaryKey("project_id", "queue_id")
    project_id = models.UUIDField()
    queue_id = models.UUIDField()
    ready = models.IntegerField()
    scheduled = models.IntegerField()
    blocked = models.IntegerField(help_text="Of the scheduled ones those that wait for other jobs.")
    claimed = models.IntegerField()
    running = models.IntegerField()
    dead_letters = models.IntegerField()
    is_capped = models.BooleanField()
    oldest_run_at = models.DateTimeField(null=True)
    as_of = models.DateTimeField()

    class Meta:
        db_table = "queue_stats"

    def __str__(self) -> str:
        return f"{self.queue_id}: {self.ready}"


class QueueDepth(models.Model):
    """How deep a queue was in the minute that began at ``at``, as the leader counted it; WHOLE_PROJECT: all together.

    A queue in which nothing was has no row for that minute; a minute in which the project has none was not counted.
    """

    pk = models.CompositePrimaryKey("project_id", "queue_id", "at")
    project_id = models.UUIDField()
    queue_id = models.UUIDField()
    at = models.DateTimeField()
    ready = models.BigIntegerField()
    scheduled = models.BigIntegerField()
    in_flight = models.BigIntegerField()
    dead_letters = models.BigIntegerField()

    class Meta:
        db_table = "queue_depths"
        indexes = [models.Index(fields=["at"], name="queue_depths_by_age")]

    def __str__(self) -> str:
        return f"{self.queue_id} {self.at}: {self.ready}"
