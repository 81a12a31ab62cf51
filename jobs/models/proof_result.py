"""What the proofs of the engine's promises found on this installation."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from scheduler_project.lib.ids import uuid7


class ProofResult(models.Model):
    """One run of one proof. Of the installation, not of a project: it was staged in a database of its own."""

    class Verdict(models.TextChoices):
        """What came of it."""

        MET = "met", "Met"
        MISSED = "missed", "Missed"
        SKIPPED = "skipped", "Not possible here"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=40)
    verdict = models.CharField(max_length=7, choices=Verdict)
    reason = models.TextField(blank=True, help_text="Why there are no figures.")
    figures = models.JSONField(default=list, help_text="name, value, unit, target and met of each.")
    command = models.CharField(max_length=500, help_text="What to type to run it again like this.")
    version = models.CharField(max_length=40)
    took_s = models.FloatField()
    ended_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "proof_results"
        indexes = [models.Index(fields=["name", "-id"], name="proof_results_of_name")]
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=["met", "missed", "skipped"]), name="proof_results_verdict"),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}"
