"""A real browser on a real web server. Every page's console errors and policy violations fail the test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, Page, sync_playwright

from tests.personas import *  # noqa: F403
from tests.personas import _without_collected_files  # noqa: F401
from tests.servers import web_server

CHROMIUM = shutil.which("chromium")
SHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]  # fmt: skip


# By module: while the driver lives its event loop runs in this thread, and no other test could start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("chromium is not installed")
        pytest.skip("chromium is not installed")
    # The driver runs an event loop in this thread; Django would refuse the ORM beside it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def server(transactional_db: None, unused_port: int) -> Iterator[str]:
    with web_server(unused_port) as url:
        yield url


@pytest.fixture
def page_as(browser: Browser, server: str, request: Any) -> Iterator[Callable[..., Page]]:
    """Opens pages as a persona (an account, or the name of its fixture); options are those of a browser context."""
    problems: list[str] = []
    contexts = []

    def open_as(who: Any, width: int = 1440, height: int = 900, scheme: str = "light", scripts: bool = True) -> Page:
        client = Client()
        client.force_login(request.getfixturevalue(who) if isinstance(who, str) else who)
        size: Any = {"width": width, "height": height}
        context = browser.new_context(
            viewport=size,
            color_scheme=scheme,  # type: ignore[arg-type]
            base_url=server,
            java_script_enabled=scripts,
        )
        context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": server}])
        page = context.new_page()
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        contexts.append(context)
        return page

    yield open_as
    for context in contexts:
        context.close()
    assert not problems


def shoot(page: Page, name: str) -> None:
    """A picture of the whole page, kept in build/screenshots."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


def check_accessible(page: Page) -> None:
    """axe-core finds nothing serious."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    bad = [v for v in found if v["impact"] in ("serious", "critical")]
    assert not bad, [(v["id"], [node["html"][:200] for node in v["nodes"]]) for v in bad]


@pytest.fixture
def organization_owner(committed_queue: Any) -> Any:
    """The owner of the organization that has the queue other processes see."""
    from orgs.models import Role
    from tests.personas import make_member

    return make_member(committed_queue.project.organization, Role.OWNER)
