"""What can be said about a call before its job is submitted."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import httpx
from django.conf import settings

from jobs.handlers.webhook.payload import BadPayload, check_payload


def check_submission(payload: Any) -> None:
    """Refuse what could never be sent. A name is not resolved here: that is decided at each call.

    Raises:
        BadPayload: names the field.
    """
    host = check_payload(payload).url.host
    try:
        literal = str(ip_address(host.strip("[]")))
    except ValueError:
        return
    if not settings.EGRESS_POLICY.permits(host, literal):
        raise BadPayload("payload.url: this address is closed by the egress policy")


def target_of(payload: Any) -> str | None:
    """Host and port of the address called, for the circuit breaker of the target; None if there is none."""
    if not isinstance(payload, dict) or not isinstance(payload.get("url"), str):
        return None
    url = httpx.URL(payload["url"])
    return f"{url.host.lower()}:{url.port or (443 if url.scheme == 'https' else 80)}" if url.host else None
