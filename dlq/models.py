"""Jobs that failed for good, kept until a person decides."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from orgs.models import Project
from queues.models import Queue
from scheduler_project.lib.ids import uuid7


class DeadLetter(models.Model):
    """What remains of a job that will not be tried again. ``payload_snapshot`` survives the purge of the job.

    The job is named, not referenced: it may be archived while its letter waits.
    """

    class Resolution(models.TextChoices):
        """What a person decided."""

        REQUEUED = "requeued", "Requeued"
        DISCARDED = "discarded", "Discarded"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    job = models.ForeignKey("jobs.Job", models.DO_NOTHING, related_name="dead_letters", db_constraint=False)
    queue = models.ForeignKey(Queue, models.CASCADE, related_name="dead_letters", db_constraint=False)
    job_type = models.CharField(max_length=200)
    payload_snapshot = models.JSONField()
    failure_reason = models.CharField(max_length=200)
    attempt_count = models.PositiveIntegerField()
    last_error = models.TextField(blank=True)
    moved_at = models.DateTimeField(db_default=Now(), editable=False)
    resolved = models.BooleanField(default=False)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    resolved_at = models.DateTimeField(null=True, editable=False)
    resolution_action = models.CharField(max_length=10, choices=Resolution, null=True)  # noqa: DJ001 - none yet

    class Meta:
        db_table = "dead_letter_queue"
        indexes = [
            models.Index(fields=["queue", "-id"], name="dead_letters_of_queue"),
            models.Index(fields=["queue", "-id"], condition=Q(resolved=False), name="dead_letters_open"),
            models.Index(fields=["project", "-id"], condition=Q(resolved=False), name="dead_letters_open_of_project"),
            models.Index(fields=["job"], name="dead_letters_of_job"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(resolved=False, resolved_at=None, resolution_action=None)
                | Q(resolved=True, resolved_at__isnull=False, resolution_action__in=["requeued", "discarded"]),
                name="dead_letters_resolution",
            ),
            models.UniqueConstraint(
                fields=["project", "job"], condition=Q(resolved=False), name="dead_letters_one_open_per_job"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_type}: {self.failure_reason}"
