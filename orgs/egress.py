"""Where the webhooks of an organization may go: two lists that narrow what the installation allows."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from orgs.models import MAX_EGRESS_ENTRIES, Organization
from scheduler_project.lib.egress import read_entry
from scheduler_project.lib.errors import FieldError, NotFound, ValidationFailed


def change_egress(
    organization: Organization, *, egress_allow: Sequence[str] | None = None, egress_deny: Sequence[str] | None = None
) -> None:
    """Replace the lists that are given; workers follow within seconds.

    Raises:
        ValidationFailed: names each entry that is wrong by its place.
    """
    lists = {"egress_allow": egress_allow, "egress_deny": egress_deny}
    given = {name: entries for name, entries in lists.items() if entries is not None}
    errors: list[FieldError] = []
    for name, entries in given.items():
        setattr(organization, name, _read(name, entries, errors))
    if errors:
        raise ValidationFailed(f"{errors[0].field}: {errors[0].message}", errors)
    organization.save(update_fields=list(given))


def egress_of_project(project_id: UUID | str) -> tuple[list[str], list[str]]:
    """The allow and the deny list of a project's organization.

    Raises:
        NotFound: there is no such project.
    """
    found = Organization.objects.filter(projects__pk=project_id).values_list("egress_allow", "egress_deny").first()
    if found is None:
        raise NotFound("There is no such project.")
    return found


def _read(name: str, entries: Sequence[str], errors: list[FieldError]) -> list[str]:
    if len(entries) > MAX_EGRESS_ENTRIES:
        errors.append(FieldError(name, f"at most {MAX_EGRESS_ENTRIES} entries are allowed"))
        return []
    found: dict[str, None] = {}
    for place, entry in enumerate(entries):
        try:
            found[read_entry(entry)] = None
        except ValueError as error:
            errors.append(FieldError(f"{name}[{place}]", str(error)))
    return list(found)
