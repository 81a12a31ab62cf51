"""http.webhook against servers that play every trick: each call ends as documented, and nothing inner is reached."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.handlers.base import Permanent, RetryAfter
from jobs.handlers.facts import ProjectFacts
from jobs.handlers.webhook.handler import MAX_KEPT_BYTES, MAX_KEPT_HEADERS, MAX_RETRY_AFTER_S, WebhookFailed, send
from jobs.handlers.webhook.payload import BadPayload, check_payload
from scheduler_project.lib.egress import Policy, Resolver, Rules, system_resolver
from tests import bad_targets
from tests.architecture.source import ROOT
from tests.bad_targets import ALL, DONE, OUTSIDE, Target
from tests.loopback import Certificates, Playground, playground
from tests.waiting import wait_until

POLICY = Policy(allow=Rules.of([OUTSIDE]))
SHORT_S, LONG_S = 0.8, 20.0


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Playground, ssl.SSLContext]]:
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    with playground(ALL, certificates) as servers:
        yield servers, certificates.client()


async def _attempt(
    servers: Playground, tls: ssl.SSLContext, payload: dict[str, Any], resolver: Resolver, facts: ProjectFacts
) -> Any:
    ctx: Any = SimpleNamespace(job_id="j1", attempt=1, fencing_number=1, project_facts=lambda: facts)
    try:
        return await send(ctx, check_payload(payload), POLICY, resolver, tls)
    except (BadPayload, Permanent, RetryAfter, WebhookFailed) as error:
        return error
    finally:
        # While the loop still runs: a connection it has forgotten would stay open as long as a worker lives.
        gone = await asyncio.to_thread(wait_until, lambda: servers.open_count == 0 or "", 10, what="hanging up")
        assert gone


def call(
    ground: tuple[Playground, ssl.SSLContext],
    url: str,
    *,
    resolver: Resolver = system_resolver,
    facts: ProjectFacts | None = None,
    **payload: Any,
) -> Any:
    """The result of one attempt, or its error."""
    servers, tls = ground
    payload = {"url": url, "timeout_s": LONG_S, **payload}
    return asyncio.run(_attempt(servers, tls, payload, resolver, facts or ProjectFacts()))


def code_of(outcome: Any) -> str:
    """The code an attempt ended with."""
    if isinstance(outcome, BadPayload):
        return "bad_payload"
    return DONE if isinstance(outcome, dict) else str(outcome).partition(":")[0]


@pytest.mark.parametrize("target", ALL, ids=lambda target: target.name)
def test_ends_as_documented(ground: tuple[Playground, ssl.SSLContext], target: Target) -> None:
    servers, _ = ground
    timeout_s = SHORT_S if target.outcome == "timeout" else LONG_S
    began = time.monotonic()

    outcome = call(ground, servers.url(target), **{"timeout_s": timeout_s, **target.payload})

    assert code_of(outcome) == target.outcome, outcome
    assert isinstance(outcome, (Permanent, BadPayload)) is target.is_final
    assert servers.visits == 0, "the private server was reached"
    if target.outcome == "timeout":
        assert time.monotonic() - began < timeout_s + 5
    if isinstance(outcome, dict):
        assert len(outcome["body"] or "") <= MAX_KEPT_BYTES
        assert len(outcome["headers"]) <= MAX_KEPT_HEADERS
        assert "\0" not in str(outcome)
    if isinstance(outcome, RetryAfter):
        assert outcome.delay_s <= MAX_RETRY_AFTER_S


def test_the_document_lists_each_target_with_its_outcome() -> None:
    lines = (ROOT / "docs/handlers/webhook.md").read_text(encoding="utf-8").split("## Bad targets")[1].splitlines()
    rows = [tuple(cell.strip(" `") for cell in line.strip("|").split("|")) for line in lines if line.startswith("| ")]
    told = {row[0]: row[1:] for row in rows if row[0] != "target"}
    next_of = {True: "final", False: "retried"}

    assert told == {
        t.name: (t.outcome, "–" if t.outcome == DONE else next_of[t.is_final]) for t in [*ALL, *bad_targets.NAMES]
    }
    assert len(told) >= 30


# -- names that lead elsewhere each time --------------------------------------------------------------------------
class Names:
    """A resolver that gives the next answer each time it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers, self.asked = list(answers), 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self._answers[min(self.asked, len(self._answers)) - 1]


def test_a_rebinding_name_is_resolved_once_for_each_attempt(ground: tuple[Playground, ssl.SSLContext]) -> None:
    servers, _ = ground
    target = next(t for t in ALL if t.name == "keeps the connection open")
    url = servers.url(target).replace(OUTSIDE, "rebinding.test")
    names = Names([OUTSIDE], ["127.0.0.2"])

    assert call(ground, url, resolver=names)["status"] == 200
    assert names.asked == 1
    for number in (2, 3):
        assert code_of(call(ground, url, resolver=names)) == "egress_denied"
        assert names.asked == number
    assert servers.visits == 0


@pytest.mark.parametrize("answer", [[OUTSIDE, "127.0.0.2"], ["127.0.0.2", OUTSIDE], ["::ffff:127.0.0.2"]])
def test_a_name_that_also_leads_inside_is_not_reached_at_all(
    ground: tuple[Playground, ssl.SSLContext], answer: list[str]
) -> None:
    servers, _ = ground
    url = f"http://both.test:{servers.private_port}/"
    outcome = call(ground, url, resolver=Names(answer))
    assert (code_of(outcome), isinstance(outcome, Permanent)) == ("egress_denied", True)
    assert servers.visits == 0


# -- lists of the organization --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("allow", "deny", "code"),
    [
        ((), (), DONE),
        (("shop.test",), (), DONE),
        (("127.0.0.0/8",), (), DONE),
        (("other.test",), (), "egress_denied"),
        ((), ("*.test",), "egress_denied"),
        (("shop.test",), (f"{OUTSIDE}/32",), "egress_denied"),
        (("a/b",), (), "egress_unreadable"),
    ],
)
def test_lists_of_the_organization_narrow(
    ground: tuple[Playground, ssl.SSLContext], allow: tuple[str, ...], deny: tuple[str, ...], code: str
) -> None:
    servers, _ = ground
    target = next(t for t in ALL if t.name == "keeps the connection open")
    url = servers.url(target).replace(OUTSIDE, "shop.test")
    facts = ProjectFacts(egress_allow=allow, egress_deny=deny)
    assert code_of(call(ground, url, resolver=Names([OUTSIDE]), facts=facts)) == code


def test_an_organization_opens_nothing(ground: tuple[Playground, ssl.SSLContext]) -> None:
    servers, _ = ground
    facts = ProjectFacts(egress_allow=("127.0.0.2", "localhost"))
    for host in ("127.0.0.2", "localhost"):
        assert code_of(call(ground, f"http://{host}:{servers.private_port}/", facts=facts)) == "egress_denied"
    assert servers.visits == 0
