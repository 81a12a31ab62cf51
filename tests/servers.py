"""A real web server on the test database."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.processes import Process
from tests.waiting import wait_until


@contextmanager
def web_server(port: int, **env: str) -> Iterator[str]:
    """gunicorn, as in production; its address."""
    with web_process(port, **env) as (_, url):
        yield url


@contextmanager
def web_process(port: int, **env: str) -> Iterator[tuple[Process, str]]:
    """The same with its process, for signals."""
    url = f"http://127.0.0.1:{port}"
    with Process.of_web({"APP_API_PORT": str(port), "APP_API_HOST": "127.0.0.1", **env}) as web:
        problem = ""

        def is_up() -> bool:
            nonlocal problem
            assert web.popen.poll() is None, web.output()
            try:
                return bool(urllib.request.urlopen(f"{url}/readyz", timeout=10).status == 200)
            except urllib.error.HTTPError as error:
                problem = error.read().decode(errors="replace")
            except OSError as error:
                problem = str(error)
            return False

        try:
            wait_until(is_up, 40, what="the web server")
        except AssertionError as error:
            raise AssertionError(f"{error}; {problem}\n{web.output()[-5_000:]}") from None
        yield web, url
