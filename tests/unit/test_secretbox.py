"""Secrets at rest: what is sealed can be opened with the present key and the listed earlier ones, else not."""

from __future__ import annotations

import pytest

from scheduler_project.lib import secretbox

OLD, NEW = "old-" + "k" * 40, "new-" + "k" * 40


def test_opens_what_it_sealed(settings) -> None:
    sealed = secretbox.encrypt(b"\x00whsec\xff")

    assert secretbox.decrypt(sealed) == b"\x00whsec\xff"
    assert "whsec" not in sealed
    assert secretbox.encrypt(b"\x00whsec\xff") != sealed, "equal secrets must not look equal"


def test_an_earlier_key_opens_until_it_is_taken_out(settings) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OLD, []
    sealed = secretbox.encrypt(b"secret")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    resealed = secretbox.reseal(sealed)
    assert secretbox.decrypt(sealed) == b"secret"

    settings.SECRET_KEY_FALLBACKS = []

    assert secretbox.decrypt(resealed) == b"secret"
    with pytest.raises(secretbox.Sealed):
        secretbox.decrypt(sealed)


@pytest.mark.parametrize("change", [lambda text: text[:-4] + "AAAA", lambda text: "", lambda text: "A" + text])
def test_a_changed_text_is_refused_without_showing_it(settings, change) -> None:
    with pytest.raises(secretbox.Sealed) as caught:
        secretbox.decrypt(change(secretbox.encrypt(b"secret")))

    assert "secretbox" not in str(caught.value)
    assert caught.value.__cause__ is None
