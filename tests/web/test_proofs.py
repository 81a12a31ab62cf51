"""The page of proofs: what is promised, and what came of it when it was last checked here."""

from __future__ import annotations

import re
from html import escape

import pytest

from jobs.models import ProofResult
from jobs.promises import PROMISES
from jobs.prove.registry import PROOFS
from jobs.services.proofs import KEPT, keep_result
from scheduler_project.lib.figures import Figure
from tests.web.test_pages import HOSTILE


@pytest.fixture
def page(home):
    return f"{home}proofs"


def read(client, path):
    return client.get(path).content.decode()


def keep(name="claim", verdict="met", figures=(), **fields):
    command = f"manage.py prove {name} --quick"
    keep_result(name, verdict, figures, **{"reason": "", "command": command, "took_s": 12.0, **fields})


def test_each_promise_has_a_proof_and_each_proof_a_promise():
    assert list(PROOFS) == list(PROMISES)


def test_what_was_never_checked_says_so_and_how_to_check_it(signed_in, page, queue):
    html = read(signed_in("viewer"), page)

    assert "Nothing was checked on this installation yet" in html
    assert html.count("Never run") == len(PROMISES)
    for name, promise in PROMISES.items():
        assert escape(promise) in html
        assert f"manage.py prove {name} --quick" in html


def test_the_last_result_is_shown_with_its_figures_date_and_command(
    signed_in, page, queue, django_assert_max_num_queries
):
    keep("claim", "missed", [Figure("claimed_twice", 7, "jobs", 0, is_most=True)])
    keep("claim", "met", [Figure("claimed_twice", 0, "jobs", 0, is_most=True), Figure("kills", 3)])
    keep("crash", "missed", reason="all jobs end: 8 jobs are left")
    client = signed_in("viewer")
    with django_assert_max_num_queries(12):
        html = read(client, page)

    claim = html.split('id="proof-claim"')[1].split("</tr>")[0]
    assert ">Met<" in claim
    assert re.search(r"claimed twice</bdi> <b>0</b> <bdi>jobs</bdi> .*at most 0", claim)
    assert re.search(r"kills</bdi> <b>3</b>", claim)
    assert "<time" in claim
    crash = html.split('id="proof-crash"')[1].split("</tr>")[0]
    assert ">Missed<" in crash
    assert "8 jobs are left" in crash
    assert "Nothing was checked" not in html
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html)


def test_hostile_words_are_text(signed_in, page, queue):
    keep("claim", "missed", [Figure(HOSTILE, 1, HOSTILE)], reason=HOSTILE, command=HOSTILE)
    html = read(signed_in("owner"), page)

    assert "<svg onload" not in html
    assert "&lt;svg onload" in html


@pytest.mark.django_db
def test_old_results_are_forgotten():
    for number in range(KEPT + 3):
        keep(took_s=float(number))
    keep("crash")

    kept = ProofResult.objects.filter(name="claim").order_by("id").values_list("took_s", flat=True)
    assert list(kept) == [float(number) for number in range(3, KEPT + 3)]
    assert ProofResult.objects.filter(name="crash").exists()
