"""The handler: one call within one deadline, and what its answer means for the job."""

from __future__ import annotations

import asyncio
import email.utils
import re
import ssl
import time
from typing import Any, NoReturn

import httpx
from django.conf import settings

from jobs.handlers.base import JobContext, Permanent, RetryAfter
from jobs.handlers.facts import ProjectFacts
from jobs.handlers.registry import handler
from jobs.handlers.webhook.payload import BadPayload, Call, check_payload
from jobs.handlers.webhook.signature import signed_headers
from jobs.handlers.webhook.submission import check_submission, target_of
from jobs.handlers.webhook.transport import new_client
from scheduler_project.lib.egress import DnsFailed, EgressDenied, Policy, Resolver, system_resolver
from scheduler_project.lib.secretbox import Sealed

MAX_KEPT_BYTES, MAX_KEPT_HEADERS, MAX_KEPT_HEADER_CHARS = 65_536, 50, 1_000
MAX_RETRY_AFTER_S = 86_400.0
#: Sealed where the job is stored, masked where it is shown.
SECRET_HEADERS = ("headers.Authorization", "headers.Cookie", "headers.X-API-Key")
_RETRIED = frozenset({408, 425, 429})
_PRIVATE = re.compile(r"cookie|auth|token|secret|key|location", re.IGNORECASE)


class WebhookFailed(Exception):
    """The call failed; another attempt may help. Begins with a stable code, never holds the address or a header."""


@handler("http.webhook", circuit=target_of, check=check_submission, secret_fields=SECRET_HEADERS)
async def webhook(ctx: JobContext) -> dict[str, Any]:
    """Send the call that the payload describes; return status, headers and body of the answer, truncated."""
    try:
        call = check_payload(ctx.payload)
    except BadPayload as error:
        raise Permanent(f"bad_payload: {error}") from None
    return await send(ctx, call, settings.EGRESS_POLICY)


async def send(
    ctx: JobContext, call: Call, policy: Policy, resolver: Resolver = system_resolver, tls: ssl.SSLContext | None = None
) -> dict[str, Any]:
    """One attempt.

    Args:
        policy: of the installation; the organization of the job may narrow it.

    Raises:
        Permanent: another attempt would end alike.
        RetryAfter: the target said when to come back.
        WebhookFailed: any other failure that may pass.
    """
    try:
        async with asyncio.timeout(call.timeout_s):
            facts = await asyncio.to_thread(ctx.project_facts)
            async with new_client(_narrowed(policy, facts), resolver, tls) as client:
                return await _exchange(ctx, call, facts, client)
    except TimeoutError:
        raise WebhookFailed(f"timeout: no complete answer within {call.timeout_s:g} s") from None
    except EgressDenied as error:
        raise Permanent(str(error)) from None
    except Sealed:
        # Unsigned instead would be worse: the receiver could no longer tell us from others.
        raise WebhookFailed("signing_failed: the project's signing secret can not be opened") from None
    except DnsFailed as error:
        raise WebhookFailed(str(error)) from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        kind = "tls_failed" if isinstance(error.__context__, ssl.SSLError) or "SSL" in str(error) else "connect_failed"
        raise WebhookFailed(f"{kind}: no connection to the target") from None
    except httpx.RemoteProtocolError:
        raise WebhookFailed("bad_answer: the target broke the rules of HTTP or ended in mid-answer") from None
    except httpx.HTTPError as error:
        raise WebhookFailed(f"connection_lost: {type(error).__name__}") from None


def _narrowed(policy: Policy, facts: ProjectFacts) -> Policy:
    try:
        return policy.narrowed(facts.egress_allow, facts.egress_deny)
    except ValueError:  # written past our checks; nothing is reached rather than too much
        raise WebhookFailed("egress_unreadable: a list of the organization holds what is no host or network") from None


async def _exchange(ctx: JobContext, call: Call, facts: ProjectFacts, client: httpx.AsyncClient) -> dict[str, Any]:
    headers = {**call.headers, **_our_headers(ctx), **_delivery_headers(ctx, call, facts)}
    request = httpx.Request(call.method, call.url, headers=headers, content=call.body)
    began = time.monotonic()
    response = await client.send(request, stream=True)
    try:
        _judge(call, response)
        body, is_cut = await _read(response)
    finally:
        await response.aclose()
    return {
        "status": response.status_code,
        "headers": _kept_headers(response),
        "body": body,
        "truncated": is_cut,
        "duration_ms": round((time.monotonic() - began) * 1000),
    }


def _our_headers(ctx: JobContext) -> dict[str, str]:
    return {
        "accept-encoding": "identity",  # nothing is ever unpacked, so nothing can swell
        "user-agent": "Punctual-Webhook",
        "connection": "close",
        "punctual-job-id": ctx.job_id,
        "punctual-attempt": str(ctx.attempt),
        "punctual-fencing-number": str(ctx.fencing_number),
    }


def _delivery_headers(ctx: JobContext, call: Call, facts: ProjectFacts) -> dict[str, str]:
    """Signed anew at each attempt, for receivers refuse old timestamps; the id stays, for them to see a repetition."""
    return signed_headers(ctx.job_id, int(time.time()), call.body, facts.webhook_secrets)


def _judge(call: Call, response: httpx.Response) -> None:
    status = response.status_code
    if any(low <= status <= high for low, high in call.expected):
        return
    if 300 <= status < 400:
        raise Permanent(f"redirect_not_allowed: redirect not allowed (status {status})")
    if status in _RETRIED or status >= 500 or any(low <= status <= high for low, high in call.retried):
        _retry(status, response.headers.get("retry-after"))
    raise Permanent(f"bad_status: the target answered {status}")


def _retry(status: int, text: str | None) -> NoReturn:
    reason = f"bad_status: the target answered {status}"
    delay_s = None if text is None else read_retry_after(text)
    if delay_s is None:
        raise WebhookFailed(reason)
    raise RetryAfter(delay_s, reason)


def read_retry_after(text: str) -> float | None:
    """Seconds to wait, at most a day, from a number of seconds or an HTTP date; None if it is neither."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), MAX_RETRY_AFTER_S)
    try:
        until = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, until - time.time()), MAX_RETRY_AFTER_S)


async def _read(response: httpx.Response) -> tuple[str | None, bool]:
    """The first part of the body as text, and whether there was more; an encoded one is not unpacked: None."""
    kept = bytearray()
    async for chunk in response.aiter_raw():
        kept += chunk[: MAX_KEPT_BYTES + 1 - len(kept)]
        if len(kept) > MAX_KEPT_BYTES:
            break
    is_cut = len(kept) > MAX_KEPT_BYTES
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return None, is_cut
    text = bytes(kept[:MAX_KEPT_BYTES]).decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text, is_cut


def _kept_headers(response: httpx.Response) -> dict[str, str]:
    items = list(response.headers.items())[:MAX_KEPT_HEADERS]
    # U+0000 can not be in a header; other bytes come as Latin-1, which PostgreSQL takes.
    return {name[:200]: "***" if _PRIVATE.search(name) else text[:MAX_KEPT_HEADER_CHARS] for name, text in items}
