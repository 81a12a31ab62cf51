"""The form of API keys."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from orgs.keys import hash_key, is_well_formed, make_key
from scheduler_project.demo import DEMO_API_KEY
from scheduler_project.lib.logs import redact


def test_new_keys_are_well_formed_and_never_repeat():
    keys = {make_key() for _ in range(200)}

    assert len(keys) == 200
    assert all(re.fullmatch(r"pk_live_[0-9a-zA-Z]{36}", key) and is_well_formed(key) for key in keys)


def test_every_single_mistyped_character_is_noticed():
    key = make_key()

    for index in range(len(key)):
        other = "b" if key[index] == "a" else "a"
        assert not is_well_formed(key[:index] + other + key[index + 1 :]), index


@given(st.text(max_size=60))
def test_no_text_breaks_the_check(text):
    assert is_well_formed(text) in {False, True}
    assert not is_well_formed("pk_live_" + text)


def test_the_demo_key_is_well_formed():
    assert is_well_formed(DEMO_API_KEY)
    assert not is_well_formed("pk_demo_" + "x" * 100)


def test_only_a_hash_is_kept_and_logs_show_nothing():
    key = make_key()

    assert len(hash_key(key)) == 64
    assert key[8:] not in redact(f"refused {key}")
