"""Settings that start, and are not what an installation should run with; modules of handlers that can not be read."""

from __future__ import annotations

import importlib

from django.conf import settings

from jobs.doctor.finding import Findings, problem, warning


def look() -> Findings:
    """Secrets, open doors, modules."""
    is_own_database = settings.EMBEDDED is None
    if is_own_database and not settings.IS_TEST and settings.SECRET_KEY.startswith("development-only-"):
        yield problem(
            "the keys of development are in use on a database of its own: anybody can sign in as anybody",
            "set APP_ENV=production, APP_SECRET_KEY and APP_JWT_SECRET",
        )
    if settings.IS_PRODUCTION and not settings.METRICS_TOKEN:
        yield warning(
            "/metrics of the web is open to everybody", "set APP_METRICS_TOKEN, or close the path at your proxy"
        )
    if settings.IS_PRODUCTION and "*" in settings.ALLOWED_HOSTS:
        yield warning("the web answers to any host name", "name yours in APP_ALLOWED_HOSTS")
    if not settings.LISTEN:
        yield warning(
            "hints are off: work is found by poll alone",
            "leave APP_LISTEN unset, and set APP_DATABASE_DIRECT_URL past the pooler",
        )
    for name in settings.HANDLER_MODULES:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - boundary: whatever a foreign module raises
            yield problem(
                f"APP_HANDLER_MODULES: {name} can not be imported: {type(error).__name__}: {error}"[:300],
                "install it or correct its name; workers do not start without it",
            )
