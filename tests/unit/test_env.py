"""Reading the environment: a bad value stops the start with the variable, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from scheduler_project import env
from scheduler_project.lib.pg import KEEPALIVE, ordinary_options, settings_from_url

Set = Callable[..., None]


@pytest.fixture
def set_env(monkeypatch: pytest.MonkeyPatch) -> Set:
    """Set APP_ variables."""

    def change(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"APP_{name}", value)

    return change


def refusal(read: Callable[[], Any]) -> str:
    with pytest.raises(env.BadSetting) as caught:
        read()
    return str(caught.value)


@pytest.mark.parametrize(
    "value", ["11", "0", "-3", "ten", "1.5", "1_0", "٣", "²", "--5", "-", "0x10", "1e3", "9" * 5_000]
)
def test_a_bad_number_names_variable_value_and_bounds(set_env: Set, value: str) -> None:
    set_env(SEATS=value)

    message = refusal(lambda: env.integer("SEATS", 5, at_least=1, at_most=10))

    assert "APP_SEATS" in message
    assert repr(value) in message
    assert "a whole number from 1 to 10" in message


@pytest.mark.parametrize(("value", "expected"), [("1", 1), (" 10 ", 10), ("007", 7), ("", 5), ("   ", 5)])
def test_a_good_number_is_taken_and_an_empty_one_is_the_default(set_env: Set, value: str, expected: int) -> None:
    set_env(SEATS=value)

    assert env.integer("SEATS", 5, at_least=1, at_most=10) == expected


def test_a_negative_number_is_taken_where_it_is_allowed(set_env: Set) -> None:
    set_env(SHIFT="-4")

    assert env.integer("SHIFT", 0, at_least=-5, at_most=5) == -4


@pytest.mark.parametrize("value", ["true", "TRUE", "1", "Yes", "on"])
def test_many_words_say_true(set_env: Set, value: str) -> None:
    set_env(LISTEN=value)

    assert env.boolean("LISTEN", default=False) is True


@pytest.mark.parametrize("value", ["false", "0", "NO", "off"])
def test_many_words_say_false(set_env: Set, value: str) -> None:
    set_env(LISTEN=value)

    assert env.boolean("LISTEN", default=True) is False


def test_another_word_is_neither_true_nor_false(set_env: Set) -> None:
    set_env(LISTEN="maybe")

    message = refusal(lambda: env.boolean("LISTEN", default=True))

    assert "APP_LISTEN='maybe'" in message
    assert "true or false" in message


def test_a_word_outside_the_choice_names_all_allowed_ones(set_env: Set) -> None:
    set_env(LOG_LEVEL="loud")

    message = refusal(lambda: env.choice("LOG_LEVEL", "info", ["debug", "info"]))

    assert "APP_LOG_LEVEL='loud'" in message
    assert "debug, info" in message


def test_a_choice_is_taken_in_any_case(set_env: Set) -> None:
    set_env(LOG_LEVEL="DeBug")

    assert env.choice("LOG_LEVEL", "info", ["debug", "info"]) == "debug"


def test_a_short_secret_is_refused_and_not_repeated(set_env: Set) -> None:
    set_env(JWT_SECRET="hunter2")

    message = refusal(lambda: env.secret("JWT_SECRET", development="dev", is_production=False))

    assert "APP_JWT_SECRET" in message
    assert "at least 32 characters" in message
    assert "hunter2" not in message


def test_production_needs_a_secret_and_development_does_not(set_env: Set) -> None:
    set_env(JWT_SECRET="")

    assert env.secret("JWT_SECRET", development="dev", is_production=False) == "dev"
    assert "APP_JWT_SECRET" in refusal(lambda: env.secret("JWT_SECRET", development="dev", is_production=True))


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:hunter2@h/db",
        "postgresql://u:hunter2@h",
        "u:hunter2",
        "postgresql://u:hunter2@h:x/d",
        "postgresql://u:hunter2@a:5432,b:x/d",
        "postgresql://u:hunter2@/d?host=a,b,c&port=5432,5433",
    ],
)
def test_a_bad_address_is_refused_without_its_password(set_env: Set, url: str) -> None:
    message = refusal(
        lambda: env.parsed("DATABASE_URL", url, settings_from_url, "an address is needed", is_secret=True)
    )

    assert "APP_DATABASE_URL" in message
    assert "an address is needed" in message
    assert "hunter2" not in message


def test_an_address_becomes_djangos_settings() -> None:
    found = settings_from_url("postgresql://ann:p%40ss@db.example:6432/jobs?sslmode=require")

    assert found == {
        "ENGINE": "scheduler_project.lib.postgres",
        "NAME": "jobs",
        "USER": "ann",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": "6432",
        "OPTIONS": {"sslmode": "require"},
    }


@pytest.mark.parametrize(
    ("address", "hosts", "ports"),
    [
        ("ann@a:5432,b:5433/jobs", "a,b", "5432,5433"),
        ("ann@a,b/jobs", "a,b", ","),  # empty: 5432
        ("ann@a:6432,b/jobs", "a,b", "6432,"),
        ("ann@/jobs?host=a,b&port=6432", "a,b", "6432"),
        ("ann@/jobs?host=/run/a,/run/b&port=5432,5432", "/run/a,/run/b", "5432,5432"),
    ],
)
def test_of_several_hosts_the_one_that_takes_writes_is_used(address: str, hosts: str, ports: str) -> None:
    found = settings_from_url(f"postgresql://{address}")

    assert (found["HOST"], found["PORT"]) == (hosts, ports)
    assert found["OPTIONS"] == {"target_session_attrs": "read-write"}


def test_an_address_may_ask_for_any_host_and_a_single_one_is_asked_for_nothing() -> None:
    assert settings_from_url("postgresql://a,b/jobs?target_session_attrs=any")["OPTIONS"] == {
        "target_session_attrs": "any"
    }
    assert settings_from_url("postgresql://a/jobs")["OPTIONS"] == {}


def test_every_session_notices_a_host_that_vanishes_unless_its_address_says_otherwise() -> None:
    options = ordinary_options(settings_from_url("postgresql://a/jobs?tcp_user_timeout=60000"))

    assert options == {**KEEPALIVE, "tcp_user_timeout": "60000", "connect_timeout": 5, "server_side_binding": False}
    assert KEEPALIVE.items() <= settings.DATABASES["default"]["OPTIONS"].items()


def test_lists_are_cut_at_commas_and_blanks_dropped(set_env: Set) -> None:
    set_env(HANDLER_MODULES=" a.b , , c ")

    assert env.names("HANDLER_MODULES") == ["a.b", "c"]


def test_a_bad_setting_ends_the_process_with_its_message() -> None:
    assert issubclass(env.BadSetting, SystemExit)
    assert env.BadSetting("X", "1", "two is needed").code == (
        "APP_X='1' is not usable: two is needed. Correct or unset it and start again."
    )


def test_pairs_are_read_and_half_ones_refused(set_env: Set) -> None:
    set_env(PAIRS=" default = acme/web/default , mail=acme/web/a=b")
    assert env.pairs("PAIRS", "pairs are needed") == {"default": "acme/web/default", "mail": "acme/web/a=b"}

    for value in ("default", "=x", "default="):
        set_env(PAIRS=value)
        assert "pairs are needed" in refusal(lambda: env.pairs("PAIRS", "pairs are needed"))
