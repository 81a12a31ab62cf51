"""A program, run in the scratch database: signs an owner in, and writes the cookies of his browser."""

from __future__ import annotations

import sys

import django

django.setup()

from django.test import Client  # noqa: E402 - after the set-up

from accounts.models import User  # noqa: E402
from orgs.models import OrganizationMember, Project, Role  # noqa: E402


def main() -> int:
    """Sign in, and write the header."""
    project = Project.objects.select_related("organization").get()
    owner = User.objects.create_user("owner@example.com")
    OrganizationMember.objects.create(organization=project.organization, user=owner, role=Role.OWNER)
    client = Client()
    client.force_login(owner)
    sys.stdout.write("; ".join(f"{name}={cookie.value}" for name, cookie in client.cookies.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
