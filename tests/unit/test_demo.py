"""What the demo says and checks before it starts anything."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
from argparse import ArgumentTypeError

import pytest
from django.core.management.base import CommandError

from jobs.management.commands import demo
from scheduler_project.demo import DEMO_ACCOUNTS, DEMO_API_KEY, banner

URL = "http://127.0.0.1:3000"


def curl_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if "curl" in line]


def test_the_banner_holds_commands_that_a_shell_understands():
    text = banner(URL, has_sample_data=True)

    with_key, _, with_token = curl_lines(text)
    words = shlex.split(with_key)
    body = {"queue": "acme-corp/web-app/default", "job_type": "test.echo", "payload": {"hello": "world"}}
    assert f"X-API-Key: {DEMO_API_KEY}" in words
    assert f"{URL}/api/jobs" in words
    assert json.loads(words[-1]) == json.loads(shlex.split(with_token)[-1]) == body
    assert all(email in text for email, _ in DEMO_ACCOUNTS)


def test_the_login_line_of_the_banner_puts_the_token_into_the_shell():
    login = curl_lines(banner(URL, has_sample_data=True))[1]
    answer = '{"token_type": "Bearer", "access": "abc.d-e_f", "refresh": "other", "expires_in": 900}'
    fake_curl = f"curl() {{ echo '{answer}'; }}; {login}; echo \"$TOKEN\""

    shown = subprocess.run(["sh", "-c", fake_curl], capture_output=True, text=True, check=True).stdout

    assert shown == "abc.d-e_f\n"


def test_without_sample_data_the_banner_names_no_accounts():
    text = banner(URL, has_sample_data=False)

    assert f"Punctual is ready: {URL}/" in text
    assert DEMO_API_KEY not in text
    assert "@example.com" not in text


def test_a_port_in_use_is_refused_in_one_line_that_names_the_way_out():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(CommandError) as refused:
            demo._check_port_is_free("127.0.0.1", port)

    said = str(refused.value)
    assert f"Port {port} on 127.0.0.1" in said
    assert "--port or APP_API_PORT" in said
    assert "\n" not in said


def test_a_port_that_was_just_left_is_free():
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client, listener.accept()[0] as server:
            server.shutdown(socket.SHUT_RDWR)  # we close first: the address lingers on our side
            assert client.recv(1) == b""

    demo._check_port_is_free("127.0.0.1", port)


@pytest.mark.parametrize("text", ["0", "65536", "-1", "3000.0", "x", "", "٣"])
def test_a_number_out_of_bounds_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="from 1 to 65535"):
        demo._number(1, 65_535)(text)


def test_every_child_gets_the_address_and_no_metrics_port_of_its_own():
    specs = demo._children("127.0.0.1", 3001, {"workers": 2, "schedulers": 1})

    assert [spec.name for spec in specs] == ["web", "worker-1", "worker-2", "scheduler-1"]
    assert {spec.environment["APP_API_PORT"] for spec in specs} == {"3001"}
    assert all(list(spec.arguments[-2:]) == ["--metrics-port", "0"] for spec in specs[1:])
