"""Secrets inside JSON: sealed, opened, masked, compared, and blotted out of texts."""

from __future__ import annotations

import json

import pytest
from pytest_django import Settings

from scheduler_project.lib import sealed_json
from scheduler_project.lib.scrub import MASK, Scrubber
from scheduler_project.lib.secretbox import Sealed

PATHS = [("password",), ("headers", "Authorization"), ("items", "key"), ("any", "*")]
PAYLOAD = {
    "user": "ada", "password": "hunter2", "headers": {"authorization": "Bearer to-ken!", "Accept": "*/*"},
    "items": [{"key": {"a": 1}, "n": 1}, {"key": None}, 7], "any": {"x": 1, "y": [2]},
}  # fmt: skip


def test_what_is_secret_is_sealed_and_opens_again():
    sealed = sealed_json.seal(PAYLOAD, PATHS)

    text = json.dumps(sealed)
    assert "hunter2" not in text
    assert "to-ken!" not in text
    assert sealed_json.SIGN in text
    assert sealed["user"] == "ada"
    assert sealed["items"][1] == {"key": None}
    opened = sealed_json.opened(sealed)
    assert opened.value == PAYLOAD
    assert opened.secrets == ["hunter2", "Bearer to-ken!", {"a": 1}, 1, [2]]


def test_people_see_a_mask():
    shown = sealed_json.masked(sealed_json.seal(PAYLOAD, PATHS))

    assert shown["password"] == shown["headers"]["authorization"] == shown["any"]["y"] == sealed_json.MASK
    assert shown["headers"]["Accept"] == "*/*"


def test_without_paths_nothing_happens():
    assert sealed_json.seal(PAYLOAD, []) is PAYLOAD
    assert sealed_json.masked(PAYLOAD) == PAYLOAD
    assert sealed_json.opened(PAYLOAD) == (PAYLOAD, [])


def test_the_same_secret_looks_different_each_time_and_is_known_again():
    one, two = sealed_json.seal(PAYLOAD, PATHS), sealed_json.seal(PAYLOAD, PATHS)

    assert one["password"] != two["password"]
    assert one["password"]["mac"] != two["password"]["mac"]
    assert sealed_json.is_same(one, PAYLOAD)


@pytest.mark.parametrize(
    "other",
    [
        {**PAYLOAD, "password": "hunter3"},
        {**PAYLOAD, "user": "bob"},
        {**PAYLOAD, "items": [{"key": {"a": 1}, "n": 1}, {"key": None}]},
        {**PAYLOAD, "items": [{"key": {"a": 1}, "n": True}, {"key": None}, 7]},
        {**PAYLOAD, "more": None},
        {name: value for name, value in PAYLOAD.items() if name != "password"},
        [PAYLOAD],
        None,
    ],
)
def test_another_value_is_told_from_it(other):
    assert not sealed_json.is_same(sealed_json.seal(PAYLOAD, PATHS), other)


def test_after_a_new_key_it_opens_compares_and_is_sealed_anew(settings: Settings):
    sealed = sealed_json.seal(PAYLOAD, PATHS)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 50, [settings.SECRET_KEY]

    assert sealed_json.opened(sealed).value == PAYLOAD
    assert sealed_json.is_same(sealed, PAYLOAD)
    text = json.dumps(sealed)
    for old, new in sealed_json.renewals(sealed).items():
        text = text.replace(old, new)
    renewed = json.loads(text)
    assert sealed_json.renewals(renewed) == {}

    settings.SECRET_KEY_FALLBACKS = []
    assert sealed_json.opened(renewed).value == PAYLOAD
    assert sealed_json.is_same(renewed, PAYLOAD)
    with pytest.raises(Sealed):
        sealed_json.opened(sealed)
    assert not sealed_json.is_same(sealed, PAYLOAD)


def test_the_reserved_name_is_found_wherever_it_stands():
    assert sealed_json.has_reserved_name({"a": [{"b": {"$secret": 1}}]})
    assert not sealed_json.has_reserved_name({"a": ["$secret", {"secret": "$secret"}]})


def test_texts_lose_the_secrets_in_every_form_they_may_have():
    scrub = Scrubber(["pa'ss\"wörd\n&x", "Bearer tok-en-1", {"pin": [123456]}, True, None, ""])

    for text in (
        "x pa'ss\"wörd\n&x y",
        repr("pa'ss\"wörd\n&x"),
        json.dumps("pa'ss\"wörd\n&x"),
        "https://h/?q=pa%27ss%22w%C3%B6rd%0A%26x",
        "Authorization: Bearer tok-en-1",
        "token tok-en-1 refused",
        "pin 123456",
        "cGEnc3Mid8O2cmQKJng=",
    ):
        found = scrub(text)
        assert MASK in found, text
        assert not any(part in found for part in ("w\u00f6rd", "tok-en", "123456", "cGEnc3M")), found


def test_short_secrets_are_blotted_out_as_words_only():
    assert Scrubber(["no"])("no, nothing known: no") == f"{MASK}, nothing known: {MASK}"


def test_values_lose_them_too():
    scrub = Scrubber(["hunter2", 123456])

    assert scrub.value({"a": ["my hunter2", 123456, 1.5, True, None], "hunter2": 1}) == {
        "a": [f"my {MASK}", MASK, 1.5, True, None], MASK: 1,
    }  # fmt: skip
