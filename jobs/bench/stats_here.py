"""A program, run in the scratch database: what one answer costs the web process itself, without socket and client.

Standard input: the API key, then the path. Output as JSON: the median time, the process's own processor time (what
other processes do meanwhile is not in it, nor is PostgreSQL's part), and statements of one answer.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

ROUNDS, WARM_UP = 300, 20


def main() -> int:
    """Ask, and write the figures."""
    import django

    django.setup()
    from django.db import connection  # noqa: TID251 - every statement is to be seen
    from django.test import Client

    key, path = sys.stdin.read().split("\n", 1)
    client = Client(headers={"host": "localhost", "x-api-key": key})
    statements = 0

    def _count(execute: Callable[..., Any], statement: Any, params: Any, many: bool, context: Any) -> Any:
        nonlocal statements
        statements += 1
        return execute(statement, params, many, context)

    def ask(times: int) -> list[float]:
        took = []
        for _ in range(times):
            began = time.perf_counter()
            answer = client.get(path)
            took.append((time.perf_counter() - began) * 1000)
            if answer.status_code != 200:
                raise RuntimeError(f"GET {path}: {answer.status_code} {answer.content[:200]!r}")
        return took

    ask(WARM_UP)
    before = time.process_time()
    took = ask(ROUNDS)
    cpu = (time.process_time() - before) * 1000 / ROUNDS
    with connection.execute_wrapper(_count):
        ask(1)
    json.dump({"p50": statistics.median(took), "cpu": cpu, "statements": statements}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
