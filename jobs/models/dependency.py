"""Which job waits for which."""

from __future__ import annotations

from django.db import models

from jobs.models.job import Job
from orgs.models import Project


class JobDependency(models.Model):
    """``job`` begins only after ``depends_on_job`` has ended. The key is the pair."""

    class OnFailure(models.TextChoices):
        """What becomes of the job if the one it waits for does not complete."""

        CANCEL = "cancel", "Cancel it"
        RUN = "run", "Run it anyway"
        WAIT = "wait", "Let it wait for a retry"

    pk = models.CompositePrimaryKey("job_id", "depends_on_job_id")
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    job = models.ForeignKey(Job, models.CASCADE, related_name="dependencies", db_constraint=False, db_index=False)
    depends_on_job = models.ForeignKey(
        Job, models.CASCADE, related_name="dependants", db_constraint=False, db_index=False
    )

    on_failure = models.CharField(max_length=6, choices=OnFailure, default=OnFailure.CANCEL)

    class Meta:
        db_table = "job_dependencies"
        verbose_name_plural = "job dependencies"
        indexes = [
            models.Index(fields=["depends_on_job"], name="dependencies_of_parent"),
            models.Index(fields=["project", "-job"], name="dependencies_of_project"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(job=models.F("depends_on_job")), name="job_dependencies_not_on_itself"
            ),
            models.CheckConstraint(
                condition=models.Q(on_failure__in=["cancel", "run", "wait"]), name="job_dependencies_on_failure"
            ),
        ]
