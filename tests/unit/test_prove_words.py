"""What the command says of proofs that were met, missed, not possible, or staged in part."""

from __future__ import annotations

import json

from jobs.management.commands.prove import _as_json, _as_table
from jobs.prove.runner import Verdict, _hear
from scheduler_project.lib.figures import Figure

NOTE = "not staged: a host that vanishes: the program ip (iproute2) is not there"


def verdicts() -> list[Verdict]:
    met = Verdict("failover", {}, [Figure("missing", 0, "jobs", 0, is_most=True)], notes=[NOTE])
    missed = Verdict("claim", {}, [Figure("started_twice", 1, "jobs", 0, is_most=True)])
    return [met, missed, Verdict("database", {}, reason="no PostgreSQL", is_skipped=True)]


def test_what_was_left_out_is_said_and_what_was_not_possible_is_not_met() -> None:
    text = _as_table(verdicts())

    assert f"  {NOTE}\n" in text
    assert "database: not possible here: no PostgreSQL" in text
    assert text.endswith("1 of 3 met; missed: claim; not possible here: database; in part not staged: failover")


def test_it_is_in_the_machine_readable_answer_and_in_what_is_kept() -> None:
    [failover, _, database] = json.loads(_as_json(verdicts()))["proofs"]

    assert (failover["met"], failover["notes"]) == (True, [NOTE])
    assert (database["skipped"], database["reason"]) == (True, "no PostgreSQL")
    assert [one.said for one in verdicts()] == [NOTE, "", "no PostgreSQL"]


def test_a_note_of_the_proof_is_told_at_once_and_remembered() -> None:
    verdict = Verdict("failover", {})
    told: list[str] = []

    _hear("prove " + json.dumps({"kind": "note", "text": NOTE}), verdict, [], told.append)

    assert (told, verdict.notes, verdict.is_skipped) == ([NOTE], [NOTE], False)
