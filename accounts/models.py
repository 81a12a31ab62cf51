"""People who sign in, and their log-ins through the API."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.db.models.functions import Lower, Now

from scheduler_project.lib.ids import uuid7


class UserManager(BaseUserManager["User"]):
    """Creates accounts and finds them by e-mail without regard to case."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        """Store a new account; the e-mail is kept in lower case, the password only as its hash."""
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        """An operator of the whole installation, for Django admin."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> User:
        """The account of an e-mail address in any case."""
        return self.get(email=(username or "").strip().lower())


class User(AbstractBaseUser, PermissionsMixin):
    """A person. E-mail addresses differ by more than case: stored in lower case, which the database checks."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField(unique=True)
    full_name = models.CharField(max_length=200, blank=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False, help_text="May open Django admin.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = []

    class Meta:
        db_table = "users"
        constraints = [
            models.CheckConstraint(condition=models.Q(email=Lower("email")), name="users_email_is_lower_case"),
        ]

    def __str__(self) -> str:
        return self.email


class RefreshFamily(models.Model):
    """One log-in and all refresh tokens that came of it, each made from the one before.

    Only ``current_jti`` may be exchanged. An older one that turns up was stolen or replayed: the family dies.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="refresh_families")
    current_jti = models.UUIDField(editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = "refresh_families"
        verbose_name_plural = "refresh families"

    def __str__(self) -> str:
        return f"log-in of {self.created_at}"
