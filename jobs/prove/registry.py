"""All proofs, in the order in which they run."""

from __future__ import annotations

from jobs.prove.proofs import (
    batch,
    breaker,
    claim,
    crash,
    cron,
    dag,
    database,
    egress,
    exactly_once,
    explain,
    failover,
    fairness,
    fencing,
    latency,
    limits,
    misfire,
    redrive,
    rot,
    shutdown,
    tenancy,
)
from jobs.prove.stage.proof import Proof

_MODULES = (
    claim,
    crash,
    fencing,
    exactly_once,
    shutdown,
    failover,
    limits,
    cron,
    misfire,
    dag,
    batch,
    latency,
    database,
    breaker,
    egress,
    fairness,
    rot,
    explain,
    tenancy,
    redrive,
)
PROOFS: dict[str, Proof] = {module.PROOF.name: module.PROOF for module in _MODULES}


def find(name: str) -> Proof:
    """The proof of this name; KeyError if there is none."""
    return PROOFS[name]
