"""Every page in a browser, as each role, in light and dark, wide and narrow; and what people do on them."""

from __future__ import annotations

import pytest

from dlq.models import DeadLetter
from jobs.models import Job, ScheduledJob
from jobs.services.schedules import create_schedule
from orgs.models import Role
from tests import processes
from tests.browser.conftest import check_accessible, shoot
from tests.browser.furnished import FOR_ADMINS, FOR_MEMBERS, furnish
from tests.factories import job_in, path_of
from tests.personas import make_member
from tests.sizes import IS_FULL
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]
SIDES = tuple((width, scheme) for width in (1440, 820, 390) for scheme in ("light", "dark"))
#: All sides from all roles at full size; else each side from one, what an owner sees holding all that others see.
SEEN_BY = {
    Role.OWNER: ((1440, "light"), (390, "dark")),
    Role.ADMIN: ((1440, "dark"),),
    Role.MEMBER: ((820, "light"), (820, "dark")),
    Role.VIEWER: ((390, "light"),),
}
CHECKED = SEEN_BY[Role.OWNER]


def sides_of(role):
    return SIDES if IS_FULL else SEEN_BY[role]


@pytest.fixture
def home(committed_queue):
    return "/p/" + path_of(committed_queue).rpartition("/")[0] + "/"


@pytest.mark.parametrize("role", [Role.VIEWER, Role.MEMBER, Role.ADMIN, Role.OWNER])
def test_every_page_fits_and_is_accessible(committed_queue, organization_owner, page_as, home, role):
    """Console errors and policy violations fail the test too: the fixture looks at them in the end."""
    pages = furnish(committed_queue, organization_owner)
    pages |= FOR_MEMBERS if role.rank >= Role.MEMBER.rank else {}
    pages |= FOR_ADMINS if role.rank >= Role.ADMIN.rank else {}
    page = page_as(make_member(committed_queue.project.organization, role))
    seen = set()
    for name, path in pages.items():
        page.goto(home + path)
        seen |= {link.get_attribute("href") for link in page.locator(".side a").all()}
        for width, scheme in sides_of(role):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
            if role == Role.OWNER or IS_FULL:
                shoot(page, f"{role.value}/{name}-{width}-{scheme}")
            if role == Role.OWNER and (width, scheme) in CHECKED:  # axe takes its time
                check_accessible(page)
        page.set_viewport_size({"width": 360, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, 360)
    # No page of the navigation was left out.
    assert seen <= {home + path for path in pages.values()}


def test_ways_in_and_questions_fit_and_are_accessible(committed_queue, organization_owner, page_as, home):
    """What the walk over the project's pages does not come by."""
    page = page_as(organization_owner)
    job = job_in("dead_letter", committed_queue).job

    def look(name):
        for width, scheme in CHECKED:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
            shoot(page, f"ways-in/{name}-{width}-{scheme}")
            check_accessible(page)

    page.goto(home + f"queues/{committed_queue.pk}")
    page.get_by_role("button", name="Delete queue").click()
    page.get_by_text("Keep it").wait_for()
    look("question")
    page.goto(home + f"jobs/new?from={job.pk}")
    look("edit-and-run-again")
    page.goto("/welcome")
    look("welcome")
    page.fill("input[name=organization]", "Acme Corp")
    page.fill("input[name=project]", "Web App")
    page.get_by_role("button", name="Create").click()
    page.locator("#arrival").wait_for()
    look("first-job")
    page.context.clear_cookies()
    for name in ("login", "register"):
        page.goto(f"/{name}")
        look(name)


def test_a_job_is_submitted_and_watched_until_it_is_done(committed_queue, organization_owner, page_as, home):
    page = page_as(organization_owner)
    page.goto(home + "jobs/new")
    page.fill("input[name=job_type]", "test.echo")
    page.fill("textarea[name=payload]", '{"hello": "world"}')
    page.get_by_role("button", name="Submit").click()
    page.locator(".job-head", has_text="Queued").wait_for()
    page.locator(".timeline", has_text="Waits for a worker").wait_for()
    with processes.worker("--queues", path_of(committed_queue)):
        page.locator(".job-head", has_text="Completed").wait_for(timeout=30_000)  # live: nobody asked for the page anew
        page.locator(".timeline", has_text="Attempt 1 completed").wait_for()


def test_a_dead_letter_is_queued_again_and_a_selection_survives(committed_queue, organization_owner, page_as, home):
    dead = job_in("dead_letter", committed_queue).job
    page = page_as(organization_owner)
    page.goto(home + "dead-letter?view=list")
    page.locator("input[data-all]").check()
    page.locator("[data-chosen]", has_text="1 selected").wait_for()
    page.keyboard.press("Escape")
    assert not page.locator("input[data-row]").is_checked()
    page.locator("input[data-row]").check()
    page.locator("[data-live-text]", has_text="1 selected").wait_for()
    page.get_by_role("button", name="Queue selected again").click()
    page.get_by_role("button", name="Queue again").click()
    page.locator(".toast", has_text="queued again").wait_for()
    with processes.scheduler():
        page.get_by_role("link", name="Watch it").click()
        page.locator(".job-head", has_text="Completed").wait_for(timeout=30_000)
    assert Job.objects.get(pk=dead.pk).status == "queued"
    assert DeadLetter.objects.get(job=dead).resolution_action == "requeued"


def test_a_schedule_is_edited_with_its_preview(committed_queue, organization_owner, page_as, home):
    schedule = create_schedule(committed_queue, name="nightly", cron_expression="0 3 * * *", job_type="noop")
    page = page_as(organization_owner)
    page.goto(home + f"scheduled-jobs/{schedule.pk}/edit")
    before = page.locator("#preview").inner_text()
    page.fill("input[name=cron_expression]", "30 4 * * *")
    wait_until(lambda: page.locator("#preview").inner_text() != before, 10, what="the preview")
    assert "04:30" in page.locator("#preview").inner_text()
    page.get_by_role("button", name="Save").click()
    page.locator(".toast", has_text="is changed").wait_for()
    assert ScheduledJob.objects.get(pk=schedule.pk).cron_expression == "30 4 * * *"


def test_a_policy_is_previewed_and_a_key_is_shown_once(committed_queue, organization_owner, page_as, home):
    page = page_as(organization_owner)
    page.goto(home + "retry-policies/new")
    page.fill("input[name=max_attempts]", "1")
    page.locator("#plan", has_text="Never tries again").wait_for(timeout=10_000)
    page.goto(home + "settings/api-keys")
    page.fill("input[name=name]", "ci")
    page.get_by_role("button", name="Create key").click()
    assert page.locator(".snippet pre").inner_text().startswith("pk_live_")
    page.get_by_role("link", name="I stored it").click()
    page.locator("td.what", has_text="ci").wait_for()
    assert "pk_live_" in page.locator("tbody").inner_text()
    assert page.locator(".snippet").count() == 0
