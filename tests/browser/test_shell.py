"""The pages as people see them."""

from __future__ import annotations

import pytest

from tests.browser.conftest import check_accessible, shoot
from tests.factories import make_job, path_of
from tests.sizes import long

pytestmark = pytest.mark.process
SIZES = [(1440, "light"), (1440, "dark"), (820, "light"), (390, "dark")]


def _home(queue):
    return "/p/" + path_of(queue).rpartition("/")[0] + "/"


@long
def test_pages_fit_and_are_accessible_at_every_size(committed_queue, organization_owner, page_as):
    home = _home(committed_queue)
    make_job(committed_queue)
    for width, scheme in SIZES:
        page = page_as("organization_owner", width, scheme=scheme)
        for name, path in (("dashboard", ""), ("queues", "queues"), ("queue", f"queues/{committed_queue.pk}")):
            page.goto(home + path)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
            check_accessible(page)
            shoot(page, f"{name}-{width}-{scheme}")


def test_a_new_job_appears_live_and_a_selection_is_not_lost(committed_queue, organization_owner, page_as):
    page = page_as("organization_owner")
    page.goto(_home(committed_queue) + "queues")
    make_job(committed_queue)

    page.locator("td[data-label=Ready]", has_text="1").wait_for(timeout=15_000)


def test_pause_undo_palette_and_help(committed_queue, organization_owner, page_as):
    page = page_as("organization_owner")
    page.goto(_home(committed_queue) + f"queues/{committed_queue.pk}")
    page.fill("input[name=reason]", "deploy")
    page.get_by_role("button", name="Pause").click()
    page.locator(".notice", has_text="deploy").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.locator(".toast", has_text="resumed").wait_for()
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.locator("#palette-list a", has_text="Queues").wait_for()
    page.keyboard.type("dash")
    page.locator("#palette-list a", has_text="Queues").wait_for(state="detached")
    page.keyboard.press("Enter")
    page.wait_for_url("**" + _home(committed_queue))


def test_a_slash_leads_to_the_search_of_a_page_that_has_one(committed_queue, organization_owner, page_as):
    page = page_as("organization_owner")
    make_job(committed_queue)
    page.goto(_home(committed_queue) + "jobs")
    page.keyboard.press("/")
    page.keyboard.type("status:nothing")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="is one of scheduled").wait_for()
    check_accessible(page)
    page.fill("[data-search]", "status:queued")
    page.keyboard.press("Enter")
    page.locator("#job-list tr[id^=j-]").wait_for()
    page.goto(_home(committed_queue))
    page.keyboard.press("/")
    page.locator("#palette-list a", has_text="Queues").wait_for()


def test_without_a_script_everything_is_within_reach(committed_queue, organization_owner, page_as):
    page = page_as("organization_owner", 390, scripts=False)
    page.goto(_home(committed_queue) + f"queues/{committed_queue.pk}")
    assert page.locator(".side a", has_text="Dead letter").is_visible()
    assert page.locator("[data-scripted]:visible").count() == 0
    page.fill("input[name=reason]", "deploy")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Undo").click()
    assert page.locator(".toast", has_text="resumed").is_visible()
