"""A program, run in the scratch database: how many statements one submission over the API costs.

The web process's stack without its socket, so that each statement can be seen; hints are counted apart, since a burst
of submissions shares them. Standard input: the API key, then the body. Output: statements and hints per submission.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

ROUNDS, WARM_UP = 300, 20


def main() -> int:
    """Count, and write the two figures."""
    import django

    django.setup()
    from django.db import connection  # noqa: TID251 - every statement is to be seen
    from django.test import Client

    key, body = sys.stdin.read().split("\n", 1)
    client = Client(headers={"host": "localhost", "x-api-key": key})
    counts = {"statements": 0, "hints": 0}

    def _count(execute: Callable[..., Any], statement: Any, params: Any, many: bool, context: Any) -> Any:
        counts["hints" if "/* hint */" in str(statement) else "statements"] += 1
        return execute(statement, params, many, context)

    def submit(times: int) -> None:
        for _ in range(times):
            answer = client.post("/api/jobs", body, content_type="application/json")
            if answer.status_code != 201:
                raise RuntimeError(f"POST /api/jobs: {answer.status_code} {answer.content[:200]!r}")

    submit(WARM_UP)
    with connection.execute_wrapper(_count):
        submit(ROUNDS)
    sys.stdout.write(f"{counts['statements'] / ROUNDS} {counts['hints'] / ROUNDS}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
