"""Sends requests, again where that is safe and may help."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

import httpx

from punctual_client.errors import PunctualError, Unreachable, error_of

AGENT = "punctual-client-python/0.1.0"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 20.0
#: Answers after which the same request may succeed in a moment.
_PASSING = frozenset({429, 502, 503, 504})


class Transport:
    """One connection pool to one server."""

    def __init__(self, url: str, api_key: str, *, timeout_s: float, retries: int, http: httpx.Client | None) -> None:
        self._url, self._key, self._retries = url.rstrip("/"), api_key, retries
        self._timeout_s = timeout_s
        self._owns_http = http is None
        self._http = http or httpx.Client()

    def __repr__(self) -> str:
        return f"{self._url}, key {self._key[:12]}…"

    def close(self) -> None:
        """Close the connections, unless they were given by the caller."""
        if self._owns_http:
            self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        wait_s: float = 0.0,
        is_safe: bool = True,
    ) -> tuple[int, Any]:
        """The status and JSON of a good answer.

        Args:
            is_safe: it may be sent again although it may have been carried out.
            wait_s: how long the server may take on purpose, on top of the timeout.

        Raises:
            PunctualError: the kind that goes with the answer, or Unreachable.
        """
        for attempt in range(self._retries + 1):
            try:
                return self._once(method, path, body, query, wait_s)
            except PunctualError as error:
                if attempt == self._retries or not _is_worth_it(error, is_safe=is_safe):
                    raise
                time.sleep(_pause_s(attempt, error.retry_after_s))
        raise AssertionError("unreachable")

    def _once(
        self, method: str, path: str, body: Any, query: Mapping[str, Any] | None, wait_s: float
    ) -> tuple[int, Any]:
        headers = {"X-API-Key": self._key, "User-Agent": AGENT, "Accept": "application/json"}
        given = {name: value for name, value in (query or {}).items() if value is not None}
        timeout = httpx.Timeout(self._timeout_s, read=self._timeout_s + wait_s)
        try:
            answer = self._http.request(
                method, f"{self._url}/api/{path}", json=body, params=given, headers=headers, timeout=timeout
            )
        except httpx.HTTPError as error:
            was_sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
            raise Unreachable(f"{method} {path}: {type(error).__name__}: {error}", was_sent=was_sent) from error
        if answer.is_success:
            return answer.status_code, answer.json() if answer.content else None
        raise error_of(
            answer.status_code,
            _json(answer),
            request_id=answer.headers.get("X-Request-Id"),
            retry_after_s=_seconds(answer.headers.get("Retry-After")),
        )


def _is_worth_it(error: PunctualError, *, is_safe: bool) -> bool:
    if isinstance(error, Unreachable):
        return is_safe or not error.was_sent
    return error.status in _PASSING


def _pause_s(attempt: int, retry_after_s: float | None) -> float:
    """Twice as long each time, at least what the server asks for, never all clients at once."""
    grown = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
    spread: float = grown * random.uniform(0.5, 1.5)  # noqa: S311 - spreads retries only
    return spread if retry_after_s is None else min(LONGEST_PAUSE_S, retry_after_s) + spread / 4


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() else None
