"""Pure: what becomes of due times that passed before anybody could fire them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

Policy = Literal["run_once", "skip", "run_all"]


class Due(NamedTuple):
    """A due time and whether its job is to run."""

    at: datetime
    runs: bool


class Rules(NamedTuple):
    """What a schedule says about due times that were missed; later than ``grace`` is missed."""

    policy: Policy
    grace: timedelta
    cap: int


def judge(due_times: Sequence[datetime], now: datetime, rules: Rules, *, later: int = 0) -> list[Due]:
    """Judge due times, the earliest first, all of them at or before ``now``.

    Those within the grace are on time and run. Of the earlier ones ``run_once`` runs the latest, unless one on time
    stands for it; ``run_all`` runs the latest ``cap``; ``skip`` runs none.

    Args:
        later: how many more due times up to ``now`` follow behind these: a long gap is judged piece by piece.
    """
    missed = [at for at in due_times if now - at > rules.grace]
    on_time = due_times[len(missed) :]
    is_stood_for = bool(on_time or later)
    saved = {"skip": 0, "run_once": 0 if is_stood_for else 1, "run_all": max(0, rules.cap - later)}[rules.policy]
    first_saved = max(0, len(missed) - saved)
    return [Due(at, runs=i >= first_saved) for i, at in enumerate(missed)] + [Due(at, runs=True) for at in on_time]
