"""Lists of a tenant on top of the installation's: they close, and open nothing."""

from __future__ import annotations

import pytest

from scheduler_project.lib.egress import Policy, Rules, read_entry

HOUSE = Policy(allow=Rules.of(["10.0.0.0/8"]), deny=Rules.of(["evil.test", "10.9.0.0/16"]))


@pytest.mark.parametrize(
    ("only", "deny", "host", "address", "is_open"),
    [
        ([], [], "x.test", "1.1.1.1", True),
        ([], [], "x.test", "10.1.1.1", True),  # the house opens it
        ([], [], "x.test", "192.168.0.1", False),
        # What the house closes stays closed, whatever a tenant allows.
        (["192.168.0.0/16"], [], "x.test", "192.168.0.1", False),
        (["*.test"], [], "x.test", "127.0.0.1", False),
        (["*.test", "169.254.169.254"], [], "x.test", "169.254.169.254", False),
        (["evil.test"], [], "evil.test", "1.1.1.1", False),
        (["10.9.1.1"], [], "x.test", "10.9.1.1", False),
        # An allow list closes all else, also what the house opens.
        (["a.test"], [], "a.test", "1.1.1.1", True),
        (["a.test"], [], "A.test.", "1.1.1.1", True),
        (["a.test"], [], "b.test", "1.1.1.1", False),
        (["a.test"], [], "b.a.test", "1.1.1.1", False),
        (["*.a.test"], [], "b.a.test", "1.1.1.1", True),
        (["*.a.test"], [], "a.test", "1.1.1.1", False),
        (["a.test"], [], "b.test", "10.1.1.1", False),
        (["1.1.1.0/24"], [], "b.test", "1.1.1.1", True),
        (["1.1.1.0/24"], [], "b.test", "::ffff:1.1.1.1", True),
        (["10.1.0.0/16"], [], "b.test", "10.1.1.1", True),
        # A tenant's deny wins over every allow.
        (["a.test"], ["a.test"], "a.test", "1.1.1.1", False),
        ([], ["1.1.1.1"], "a.test", "1.1.1.1", False),
        ([], ["1.1.1.1"], "a.test", "::ffff:1.1.1.1", False),
        ([], ["10.1.0.0/16"], "a.test", "10.1.1.1", False),
        ([], ["*.a.test"], "b.a.test", "1.1.1.1", False),
    ],
)
def test_narrowed(only: list[str], deny: list[str], host: str, address: str, is_open: bool) -> None:
    assert HOUSE.narrowed(only, deny).permits(host, address) is is_open


def test_an_entry_is_kept_in_one_form() -> None:
    assert read_entry(" *.Example.COM. ") == "*.example.com"
    assert read_entry("203.0.113.7") == "203.0.113.7"
    assert read_entry("2001:DB8::/32") == "2001:db8::/32"
    assert read_entry("xn--mnchen-3ya.de") == "xn--mnchen-3ya.de"
    with pytest.raises(ValueError, match="host bits set"):
        read_entry("10.0.0.1/8")
