"""Who leads the scheduling: terms as rows, the lock in the session."""

from __future__ import annotations

from django.db.models.functions import Now

from jobs.models import LeaderTerm


def try_to_lead(lock_id: int, hostname: str, pid: int) -> int | None:
    """Take the lock for this session; the number of the new term, higher than any before, or None."""
    return LeaderTerm.terms.lead(lock_id=lock_id, hostname=hostname, pid=pid)


def renew(term: int) -> bool:
    """Renew a term; False if this session is not the one that began it."""
    return LeaderTerm.terms.renew(term=term)


def end_term(term: int) -> None:
    """Write down that a term ended in good order."""
    LeaderTerm.objects.filter(pk=term).update(ended_at=Now())


def depose_idle_leader(lock_id: int, idle_s: float) -> list[int]:
    """End the session that holds the lock and has been idle for ``idle_s``; its backend pid."""
    return LeaderTerm.terms.depose(lock_id=lock_id, idle_s=idle_s)
