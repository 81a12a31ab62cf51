"""The processes that do the work and those that lead: who they are and when they were last seen."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.managers import TermManager, WorkerManager
from orgs.models import Project
from scheduler_project.lib.ids import uuid7


class Worker(models.Model):
    """One start of a worker process; a restart is another worker.

    Our own serve every project; one that works over HTTP belongs to the project of its key, and only there is it seen.
    """

    class Status(models.TextChoices):
        """What the process is doing."""

        ACTIVE = "active", "Active"
        DRAINING = "draining", "Draining"
        STOPPED = "stopped", "Stopped"
        LOST = "lost", "Lost"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, null=True, related_name="+", db_index=False)
    hostname = models.CharField(max_length=255)
    pid = models.IntegerField()
    version = models.CharField(max_length=40)
    subscribed_queues = ArrayField(models.CharField(max_length=300), default=list, help_text="Empty is all queues.")
    max_concurrency = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status, default=Status.ACTIVE)
    started_at = models.DateTimeField(db_default=Now(), editable=False)
    last_seen_at = models.DateTimeField(db_default=Now())
    drain_requested_at = models.DateTimeField(null=True, help_text="Asked to take nothing new; for workers over HTTP.")

    objects = models.Manager["Worker"]()
    presence = WorkerManager()

    class Meta:
        db_table = "workers"
        default_manager_name = "objects"
        indexes = [
            models.Index(fields=["last_seen_at"], condition=Q(status__in=["active", "draining"]), name="workers_alive"),
            models.Index(fields=["last_seen_at"], condition=Q(status="lost"), name="workers_lost"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=["active", "draining", "stopped", "lost"]), name="workers_status"
            )
        ]

    def __str__(self) -> str:
        return f"{self.hostname}:{self.pid}"


class WorkerHeartbeat(models.Model):
    """How a worker was at one moment."""

    id = models.BigAutoField(primary_key=True)
    worker = models.ForeignKey(Worker, models.CASCADE, related_name="heartbeats", db_index=False)
    ts = models.DateTimeField(db_default=Now())
    active_job_count = models.PositiveIntegerField()
    cpu_percent = models.FloatField()
    memory_mb = models.FloatField()
    metadata = models.JSONField(default=dict)

    class Meta:
        db_table = "worker_heartbeats"
        indexes = [models.Index(fields=["worker", "-ts"], name="heartbeats_of_worker")]

    def __str__(self) -> str:
        return f"{self.worker_id} {self.ts}"


class LeaderTerm(models.Model):
    """One scheduler's time as leader. The id is the fencing number of its leadership: higher is later."""

    id = models.BigAutoField(primary_key=True)
    hostname = models.CharField(max_length=255)
    pid = models.IntegerField()
    backend_pid = models.IntegerField(help_text="The database session that holds the lock.")
    acquired_at = models.DateTimeField(db_default=Now())
    renewed_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    objects = models.Manager["LeaderTerm"]()
    terms = TermManager()

    class Meta:
        db_table = "leader_terms"
        default_manager_name = "objects"

    def __str__(self) -> str:
        return f"{self.id}: {self.hostname}:{self.pid}"
