"""What the proofs found last."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.models import ProofResult


def last_results(names: Iterable[str]) -> dict[str, ProofResult]:
    """The newest result of each proof that was ever run here."""
    rows = ProofResult.objects.filter(name__in=list(names)).order_by("name", "-id").distinct("name")
    return {row.name: row for row in rows}
