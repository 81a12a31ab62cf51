"""All proofs, in the order in which they run."""

from __future__ import annotations

from jobs.prove.proofs import claim, crash, failover, fencing, limits, shutdown
from jobs.prove.stage.proof import Proof

PROOFS: dict[str, Proof] = {
    proof.name: proof
    for proof in (claim.PROOF, crash.PROOF, fencing.PROOF, shutdown.PROOF, failover.PROOF, limits.PROOF)
}


def find(name: str) -> Proof:
    """The proof of this name; KeyError if there is none."""
    return PROOFS[name]
