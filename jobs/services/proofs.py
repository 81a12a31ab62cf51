"""Keeping what proofs have found."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from jobs.models import ProofResult
from scheduler_project.lib.figures import Figure

#: Of each proof so many results are kept.
KEPT = 100


def keep_result(
    name: str, verdict: str, figures: Sequence[Figure], *, reason: str, command: str, took_s: float
) -> None:
    """Write down one run, and forget the oldest ones of the same proof."""
    shown = [
        {"name": f.name, "value": f.value, "unit": f.unit, "target": f.target, "met": f.is_met, "is_most": f.is_most}
        for f in figures
    ]
    ProofResult.objects.create(
        name=name,
        verdict=verdict,
        figures=shown,
        reason=reason[:5_000].replace("\0", ""),
        command=command[:500],
        version=settings.VERSION,
        took_s=took_s,
    )
    old = ProofResult.objects.filter(name=name).order_by("-id").values_list("id", flat=True)[KEPT:]
    ProofResult.objects.filter(pk__in=list(old)).delete()
