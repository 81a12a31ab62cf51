"""The model: what a job, its lease and its fence are, in a few lines that know no database."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jobs.decisions import Discarded, Failed, Interrupted, Lost, Snoozed, Succeeded, Unbegun, Verdict
from jobs.states import IN_FLIGHT, TERMINAL

VERDICTS: tuple[Verdict, ...] = (
    Succeeded(), Failed("x"), Discarded("x"), Snoozed(60.0), Interrupted(), Unbegun(),
)  # fmt: skip


@dataclass(frozen=True)
class Simple:
    """A job. ``token`` is that of the only attempt whose words count."""

    status: str = "queued"
    most: int = 1
    used: int = 0
    claims: int = 0
    records: int = 0
    token: str | None = None
    worker: str | None = None
    has_lapsed: bool = False
    is_asked: bool = False

    @property
    def is_in_flight(self) -> bool:
        return self.status in IN_FLIGHT

    @property
    def has_ended(self) -> bool:
        return self.status in TERMINAL

    def claimed(self, token: str, worker: str, *, begins: bool) -> Simple:
        assert self.status == "queued"
        status = "running" if begins else "claimed"
        return replace(self, status=status, claims=self.claims + 1, token=token, worker=worker, has_lapsed=False)

    def settled(self, verdict: Verdict) -> Simple:
        assert self.is_in_flight
        status, used, records = self._next(verdict)
        return replace(
            self,
            status="cancelled" if self.is_asked else status,
            used=self.used + used,
            records=self.records + records,
            token=None,
            worker=None,
            has_lapsed=False,
        )

    def _next(self, verdict: Verdict) -> tuple[str, int, int]:
        """The next status, attempts used, rows of history."""
        retried = "dead_letter" if self.used + 1 >= self.most else "scheduled"
        return {
            Succeeded: ("completed", 1, 1),
            Failed: (retried, 1, 1),
            Lost: (retried, 1, 1),
            Discarded: ("failed", 1, 1),
            Snoozed: ("scheduled", 0, 1),
            Interrupted: ("queued", 0, 1),
            Unbegun: ("queued", 0, 0),
        }[type(verdict)]

    def cancelled(self) -> Simple:
        return replace(self, is_asked=True) if self.is_in_flight else replace(self, status="cancelled")

    def requeued(self) -> Simple:
        return replace(self, status="queued", used=0, is_asked=False)
