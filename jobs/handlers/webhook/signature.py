"""Pure: signatures by Standard Webhooks 1.0, symmetric: ``v1,`` and an HMAC-SHA256 over id, timestamp and body."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence


def signed_headers(delivery_id: str, timestamp: int, body: bytes, secrets: Sequence[bytes]) -> dict[str, str]:
    """The headers of one delivery; without a secret there is no signature.

    Args:
        delivery_id: the same at each attempt; holds no full stop.
        timestamp: seconds since 1970, when this attempt is sent.
        secrets: one signature is made with each, so that a receiver may know the old or the new one.
    """
    headers = {"webhook-id": delivery_id, "webhook-timestamp": str(timestamp)}
    message = f"{delivery_id}.{timestamp}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(secret, message, hashlib.sha256)).decode() for secret in secrets)
    if text := " ".join(f"v1,{signature}" for signature in signatures):
        headers["webhook-signature"] = text
    return headers
