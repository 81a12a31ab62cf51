"""Who owns what: organizations, their members, projects and keys; and what is shared by all replicas."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from scheduler_project.lib import egress
from scheduler_project.lib.ids import uuid7

MAX_RETENTION_DAYS = 3_650
MAX_EGRESS_ENTRIES = 100


def check_egress_entry(entry: str) -> None:
    """Refuse what is neither a host, a pattern, an address nor a network."""
    try:
        egress.read_entry(entry)
    except ValueError as error:
        raise ValidationError(f"{entry[:100]} {error}") from None


def _egress_list(help_text: str) -> models.Field[list[str], list[str]]:
    entry = models.CharField(max_length=egress.MAX_HOST_CHARS, validators=[check_egress_entry])
    made: models.Field[list[str], list[str]] = ArrayField(
        entry, size=MAX_EGRESS_ENTRIES, default=list, db_default=models.Value("{}"), blank=True, help_text=help_text
    )
    return made


class Role(models.TextChoices):
    """What a member may do, each with all that stands below it."""

    OWNER = "owner", "Owner"
    ADMIN = "admin", "Admin"
    MEMBER = "member", "Member"
    VIEWER = "viewer", "Viewer"

    @property
    def rank(self) -> int:
        """Higher may do more."""
        return [Role.VIEWER, Role.MEMBER, Role.ADMIN, Role.OWNER].index(self)


class Organization(models.Model):
    """A customer: the border no request can see across."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=80, unique=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    egress_allow = _egress_list(
        "Webhooks reach only these hosts and networks; empty: all that the installation allows."
    )
    egress_deny = _egress_list("Webhooks never reach these hosts and networks.")

    class Meta:
        db_table = "organizations"

    def __str__(self) -> str:
        return self.slug


class OrganizationMember(models.Model):
    """A person's role in an organization."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "organization_members"
        constraints = [
            models.UniqueConstraint(fields=["organization", "user"], name="organization_members_once"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="organization_members_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role}"


class Project(models.Model):
    """The tenant of every table below it: ``project_id`` stands in each of their rows and never changes."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE, related_name="projects")
    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=80)
    api_key_hash = models.CharField(max_length=64, unique=True, null=True, editable=False)  # noqa: DJ001 - unique
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    retention_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_RETENTION_DAYS)],
        help_text="Ended jobs move to the archive after so many days; empty: as the installation is set.",
    )

    class Meta:
        db_table = "projects"
        constraints = [
            models.CheckConstraint(
                condition=Q(retention_days=None) | Q(retention_days__range=(1, MAX_RETENTION_DAYS)),
                name="projects_retention_days",
            ),
            models.UniqueConstraint(
                fields=["organization", "slug"], condition=Q(deleted_at=None), name="projects_slug_in_organization"
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class ApiKey(models.Model):
    """A project's key for machines. The key itself is shown once; here lies only its hash."""

    class Scope(models.TextChoices):
        """What a key may do."""

        READ = "read", "Read"
        SUBMIT = "submit", "Read, submit and cancel jobs"
        MANAGE = "manage", "Everything in the project"
        WORK = "work", "Only run jobs, as a worker over HTTP"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, editable=False, help_text="The first characters, to tell keys apart.")
    key_hash = models.CharField(max_length=64, unique=True, editable=False)
    scope = models.CharField(max_length=10, choices=Scope, default=Scope.MANAGE)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "api_keys"
        constraints = [
            models.CheckConstraint(condition=Q(scope__in=["read", "submit", "manage", "work"]), name="api_keys_scope")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class WebhookSecret(models.Model):
    """What a project's webhook calls are signed with. Shown once; stored encrypted, for workers must read it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="webhook_secrets")
    prefix = models.CharField(max_length=16, editable=False, help_text="The first characters, to tell secrets apart.")
    sealed = models.TextField(editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "webhook_secrets"

    def __str__(self) -> str:
        return f"{self.prefix}…"


class LiveTicket(models.Model):
    """The right to open one stream of live events, for somebody who can send no header; good once and for a moment."""

    ticket_hash = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")
    api_key = models.ForeignKey(ApiKey, models.CASCADE, null=True, related_name="+")
    stamp = models.CharField(max_length=64, help_text="Changes with the user's password.")
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "live_tickets"

    def __str__(self) -> str:
        return f"until {self.expires_at}"


class AuditEntry(models.Model):
    """One deed of a person or a key: who, what, on what, before and after. Written once, never changed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE, related_name="+")
    project_id = models.UUIDField(null=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    api_key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="+")
    action = models.CharField(max_length=60, help_text="For example queue.pause.")
    target_type = models.CharField(max_length=40)
    target_id = models.CharField(max_length=80)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "audit_log"
        indexes = [
            models.Index(fields=["organization", "-id"], name="audit_log_newest"),
            models.Index(fields=["target_type", "target_id", "-id"], name="audit_log_of_target"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target_type} {self.target_id}"


class TokenBucket(models.Model):
    """A rate limit's state, shared by all processes: ``tokens`` as of ``refilled_at``."""

    key = models.CharField(max_length=200, primary_key=True)
    tokens = models.FloatField()
    refilled_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "token_buckets"

    def __str__(self) -> str:
        return self.key
