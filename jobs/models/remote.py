"""What a worker over HTTP was handed, so that a lost answer can be asked for again."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from orgs.models import Project


class WorkerClaim(models.Model):
    """One answered claim, by the id its worker chose for it. Written with the very leases it names, or not at all."""

    pk = models.CompositePrimaryKey("project_id", "claim_id")
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    claim_id = models.UUIDField()
    worker_id = models.UUIDField()
    job_ids = ArrayField(models.UUIDField())
    tokens = ArrayField(models.UUIDField())
    expires_at = models.DateTimeField(help_text="Forgotten after this; until then the id claims nothing new.")

    class Meta:
        db_table = "worker_claims"
        indexes = [models.Index(fields=["expires_at"], name="worker_claims_expired")]

    def __str__(self) -> str:
        return f"{self.claim_id}: {len(self.job_ids)}"
