"""People and machines of the tests, and how they speak to the API."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from accounts.tokens import issue
from orgs.models import ApiKey, Organization, OrganizationMember, Project, Role
from orgs.services import create_api_key
from tests.contract import check_answer
from tests.factories import make_organization

_numbers = itertools.count(1)


class Api:
    """Speaks JSON to /api as somebody; answers are Django's test responses, each held against the schema."""

    def __init__(self, user: User | None = None, *, key: str | None = None, **headers: str) -> None:
        self.headers = dict(headers)
        if user is not None:
            self.headers["Authorization"] = f"Bearer {issue(user).access}"
        if key is not None:
            self.headers["X-API-Key"] = key
        self._client = Client()

    def get(self, path: str, **query: Any) -> Any:
        return self._checked("GET", path, self._client.get(f"/api/{path}", query, headers=self.headers))

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.send("post", path, json.dumps({} if body is None else body), **headers)

    def delete(self, path: str) -> Any:
        return self._checked("DELETE", path, self._client.delete(f"/api/{path}", headers=self.headers))

    def send(self, method: str, path: str, raw: str | bytes = b"", **headers: str) -> Any:
        """Send a body as it is; header names are given with underscores."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {**self.headers, **more}
        kind = sent.pop("Content-Type", "application/json")
        answer = self._client.generic(method.upper(), f"/api/{path}", raw, content_type=kind, headers=sent)
        return self._checked(method, path, answer)

    def _checked(self, method: str, path: str, answer: Any) -> Any:
        check_answer(method, path, answer)
        return answer


def make_user(**fields: Any) -> User:
    """An account without a password, which would take time to hash."""
    return User.objects.create_user(f"user{next(_numbers)}@example.com", **fields)


def make_member(organization: Organization, role: Role) -> User:
    user = make_user(full_name=role.label)
    OrganizationMember.objects.create(organization=organization, user=user, role=role)
    return user


def make_key(project: Project, scope: ApiKey.Scope = ApiKey.Scope.MANAGE, **fields: Any) -> str:
    """A key that was used a moment ago, as a busy one is."""
    from django.db.models.functions import Now

    shown = create_api_key(project, name=f"key {next(_numbers)}", scope=scope, by=None, **fields)
    ApiKey.objects.filter(pk=shown.row.pk).update(last_used_at=Now())
    return shown.key


def all_items(api: Api, path: str, limit: int) -> list[Any]:
    """The items of every page, in their order."""
    items: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        page = api.get(path, limit=limit, offset=offset).json()
        assert len(page["items"]) <= page["limit"] == limit
        items, offset = items + page["items"], page["next_offset"]
    return items


def field_of(response: Any) -> str:
    """The first field an error names."""
    return str(response.json()["details"][0]["field"])


@pytest.fixture
def owner(organization: Organization) -> User:
    return make_member(organization, Role.OWNER)


@pytest.fixture
def manager(organization: Organization) -> User:
    """A member with the role admin; ``admin`` would be an operator of the installation."""
    return make_member(organization, Role.ADMIN)


@pytest.fixture
def member(organization: Organization) -> User:
    return make_member(organization, Role.MEMBER)


@pytest.fixture
def viewer(organization: Organization) -> User:
    return make_member(organization, Role.VIEWER)


@pytest.fixture
def outsider(db: None) -> User:
    """The owner of another organization."""
    return make_member(make_organization(), Role.OWNER)


@pytest.fixture
def as_owner(owner: User) -> Api:
    return Api(owner)


@pytest.fixture
def as_member(member: User) -> Api:
    return Api(member)


@pytest.fixture
def as_viewer(viewer: User) -> Api:
    return Api(viewer)


@pytest.fixture
def as_outsider(outsider: User) -> Api:
    return Api(outsider)


@pytest.fixture
def as_machine(project: Project) -> Api:
    """The holder of a key of the project that may do everything in it."""
    return Api(key=make_key(project))


@pytest.fixture
def anonymous(db: None) -> Api:
    return Api()


@pytest.fixture
def machine_with(project: Project) -> Callable[[ApiKey.Scope], Api]:
    return lambda scope: Api(key=make_key(project, scope))


@pytest.fixture(autouse=True)
def _without_collected_files(settings: Any) -> None:
    """Nothing is collected in a checkout; files are looked for when they are asked for, without a warning."""
    settings.WHITENOISE_AUTOREFRESH = True
