"""Are the tables those that this code expects?"""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import apps

from jobs.doctor import catalog
from jobs.doctor.finding import Findings, problem, warning
from scheduler_project.lib.database import pending_migrations, unknown_migrations

OURS = ("accounts", "orgs", "queues", "dlq", "jobs")


def look() -> Findings:
    """Migrations of this code that are missing, those of other code that are there, and what got lost since."""
    if pending := pending_migrations():
        yield problem(f"{len(pending)} migrations are not applied: {', '.join(pending[:5])}", "run manage.py migrate")
        return
    if unknown := unknown_migrations(OURS):
        names = ", ".join(unknown[:5])
        yield warning(f"the database is newer than this code: {names}", "deploy the same release everywhere")
    missing = sorted(set(_declared()) - catalog.relations())
    if missing:
        yield problem(
            f"dropped since the migrations: {', '.join(missing[:10])}",
            "make it again as its migration does; without its indexes the engine becomes slow",
        )
    for name in catalog.invalid_indexes():
        yield problem(f"the index {name} is not valid: its making failed", f"reindex index concurrently {name}")


def _declared() -> Iterator[str]:
    """Tables, indexes and constraints that the models name."""
    for label in OURS:
        for model in apps.get_app_config(label).get_models():
            if not model._meta.managed or model._meta.proxy:
                continue
            yield model._meta.db_table
            yield from (index.name for index in model._meta.indexes)
            yield from (constraint.name for constraint in model._meta.constraints)
