"""Can the stored secrets be opened with the keys of this installation?"""

from __future__ import annotations

from django.db.models import Q
from django.db.models.functions import Now

from jobs.doctor.finding import Findings, problem
from orgs.models import WebhookSecret
from scheduler_project.lib import secretbox

MOST = 1_000


def look() -> Findings:
    """Secrets that webhooks are signed with: without them no call is made."""
    usable = WebhookSecret.objects.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), revoked_at=None)
    lost = [str(row.pk) for row in usable.order_by("-id")[:MOST] if not _opens(row.sealed)]
    if lost:
        yield problem(
            f"{len(lost)} webhook secrets can not be opened, such as {lost[0]}: their projects' calls fail",
            "put the key they were sealed with into APP_SECRET_KEY_FALLBACKS, everywhere",
        )


def _opens(text: str) -> bool:
    try:
        secretbox.decrypt(text)
    except secretbox.Sealed:
        return False
    return True
