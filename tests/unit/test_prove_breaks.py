"""Each guard of each proof can be taken away as the code is now; what that does to the proof is tests/process's."""

from __future__ import annotations

import os

import pytest

from jobs import sql
from jobs.prove.registry import PROOFS
from jobs.prove.stage import breaking

GUARDS = [(name, guard) for name, proof in PROOFS.items() for guard in proof.breaks]


def test_every_proof_has_a_guard_that_can_be_taken_away() -> None:
    assert {name for name, _ in GUARDS} == set(PROOFS)


@pytest.mark.parametrize(("name", "guard"), GUARDS)
def test_the_guard_is_where_its_proof_looks_for_it(name: str, guard: str) -> None:
    from jobs.prove.stage import nursery  # noqa: F401 - all that a process of a proof has read

    child = os.fork()
    if child == 0:  # nothing is broken here
        code = 1
        try:
            PROOFS[name].breaks[guard]()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Place:
    """What is replaced here."""

    @staticmethod
    def add(one: int, other: int, *, twice: bool, more: int = 0) -> int:
        return (one + other + more) * (2 if twice else 1)


@pytest.mark.parametrize(
    "new", [lambda one, other, *, twice: 0, lambda *_more, **_named: 0, lambda one, two, three=0, *, twice=True: 0]
)
def test_what_can_be_called_alike_takes_a_functions_place(monkeypatch: pytest.MonkeyPatch, new: object) -> None:
    monkeypatch.setattr(Place, "add", staticmethod(Place.add))  # and back at the end

    breaking.replace(Place, "add", new)

    assert Place.add is new


@pytest.mark.parametrize("new", [lambda one, *, twice: 0, lambda one, other: 0, lambda one, other, third, *, twice: 0])
def test_what_can_not_be_called_alike_is_refused(new: object) -> None:
    with pytest.raises(LookupError, match="takes other arguments"):
        breaking.replace(Place, "add", new)


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(LookupError, match="has no nothing"):
        breaking.replace(Place, "nothing", 1)
    with pytest.raises(LookupError, match="does not hold"):
        breaking.rewrite("CLAIM", "no such piece of it", "")
    assert "no such piece" not in sql.CLAIM.text
