"""All proofs, in the order in which they run."""

from __future__ import annotations

from jobs.prove.proofs import (
    batch,
    claim,
    crash,
    cron,
    dag,
    failover,
    fencing,
    latency,
    limits,
    misfire,
    shutdown,
)
from jobs.prove.stage.proof import Proof

_MODULES = (
    claim,
    crash,
    fencing,
    shutdown,
    failover,
    limits,
    cron,
    misfire,
    dag,
    batch,
    latency,
)
PROOFS: dict[str, Proof] = {module.PROOF.name: module.PROOF for module in _MODULES}


def find(name: str) -> Proof:
    """The proof of this name; KeyError if there is none."""
    return PROOFS[name]
