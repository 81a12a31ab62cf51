"""Handlers that declare their payloads, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from jobs.handlers import Field, JobContext, Secret, handler, registry

PASSWORD = "hunter2-swordfish"


@dataclass
class Call:
    url: Annotated[str, Field(format="uri")]
    retries: Annotated[int, Field(ge=0)] = 3


@dataclass
class Account:
    user: str
    password: Annotated[str, Secret]


CALLS = {"type": "object", "required": ["items"], "properties": {"items": {"items": {"properties": {
    "url": {"type": "string", "format": "uri"}}, "required": ["url"]}}}}  # fmt: skip


@contextmanager
def sample_handlers() -> Iterator[dict[str, Any]]:
    """The samples are registered; what they were called with."""
    seen: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        registry.list_handlers()
        patch.setattr(registry, "_exact", dict(registry._exact))
        patch.setattr(registry, "_patterns", dict(registry._patterns))

        @handler("sample.call", payload=Call)
        def call(ctx: JobContext, wanted: Call) -> int:
            """Call an address.

            Not shown.
            """
            seen["call"] = wanted
            return wanted.retries

        @handler("sample.calls", payload=CALLS)
        def calls(ctx: JobContext) -> None:
            seen["calls"] = ctx.payload

        @handler("sample.mail")
        async def mail(ctx: JobContext, to: str, copies: int = 1) -> dict[str, int]:
            seen["mail"] = (to, copies)
            return {"copies": copies}

        @handler("sample.login", payload=Account, secret_fields=["headers.Authorization"])
        def login(ctx: JobContext, account: Account) -> None:
            seen["login"] = account

        @handler("sample.secret", secret_fields=("password", "headers.Authorization"))
        def secret(ctx: JobContext) -> Any:
            seen["secret"] = ctx.payload
            password = ctx.payload["password"]
            ctx.log(f"logging in with {password}")
            ctx.progress(50, f"as {password}")
            if ctx.payload.get("fail"):
                raise RuntimeError(f"refused: {password!r}")
            return {"used": password, "n": 1}

        @handler("sample.batch_end", payload={"properties": {"batch": {"type": "object"}, "token": {"x-secret": True}},
                                              "additionalProperties": False})  # fmt: skip
        def batch_end(ctx: JobContext) -> None:
            seen["batch_end"] = ctx.payload

        yield seen
