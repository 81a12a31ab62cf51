"""Who listens, and what he may see: by session cookie, bearer token, API key or ticket. Runs in the sockets' thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest, parse_cookie
from django.http.request import split_domain_port, validate_host
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from accounts.authentication import BearerAuthentication
from jobs.models import Job
from orgs.access import Actor, Machine, Person, project_ids
from orgs.authentication import ApiKeyAuthentication, actor_of
from orgs.tickets import holder_of, redeem_ticket
from queues.models import Queue
from scheduler_project.lib.errors import DomainError

UNKNOWN, FORBIDDEN = 4401, 4403
_REFUSED = "Sign in, or send a valid token, API key or ticket."


class Refused(Exception):
    """May not listen, or no longer. ``code`` closes a socket; its last three digits are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class Listener:
    """What somebody may see.

    Attributes:
        name: of the account or key, by which connections are counted.
    """

    name: str
    projects: frozenset[str]
    sees_shared_workers: bool


#: Asks again who it is and what he may see; raises Refused.
Look = Callable[[], Listener]


def find_listener(headers: Mapping[str, str], query: str) -> tuple[Look, Listener]:
    """How to look who this is, now and again later, and who it is now.

    Raises:
        Refused: nobody we know, or from a page of another site.
    """
    _refuse_foreign_page(headers)
    find = _way_of(headers, query)

    def look() -> Listener:
        actor = find()
        if actor is None:
            raise Refused(UNKNOWN, _REFUSED)
        return _listener(actor)

    return look, look()


def find_project_of_queue(queue_id: str) -> str | None:
    """The project of a queue, deleted or not; None if there is no such queue."""
    found = Queue.objects.filter(pk=queue_id).values_list("project_id", flat=True).first()
    return None if found is None else str(found)


def find_job(job_id: str, listener: Listener) -> tuple[str, str, str] | None:
    """Project, queue and status of a job that the listener may see; None if there is none."""
    rows = Job.objects.filter(pk=job_id, project_id__in=listener.projects)
    row = rows.values_list("project_id", "queue_id", "status").first()
    return None if row is None else (str(row[0]), str(row[1]), row[2])


def _way_of(headers: Mapping[str, str], query: str) -> Callable[[], Actor | None]:
    ticket_text = parse_qs(query).get("ticket", [""])[0]
    if ticket_text:
        ticket = redeem_ticket(ticket_text)
        return lambda: None if ticket is None else holder_of(ticket)
    if "authorization" in headers or "x-api-key" in headers:
        return lambda: _by_header(headers)
    return lambda: _by_session(headers)


def _by_header(headers: Mapping[str, str]) -> Actor | None:
    plain = HttpRequest()
    plain.META = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    request = Request(plain, authenticators=[BearerAuthentication(), ApiKeyAuthentication()])
    try:
        return actor_of(request) if request.user is not None and request.user.is_authenticated else None
    except APIException as error:
        raise Refused(UNKNOWN, str(error.detail)) from None


def _by_session(headers: Mapping[str, str]) -> Actor | None:
    key = parse_cookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME)
    if not key:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user(request)
    return Person(user.pk) if user.is_authenticated and user.is_active else None


def _listener(actor: Actor) -> Listener:
    try:
        projects = frozenset(str(id_) for id_ in project_ids(actor))
    except DomainError as error:
        raise Refused(FORBIDDEN, error.message) from None
    name = f"key:{actor.key_id}" if isinstance(actor, Machine) else f"user:{actor.user_id}"
    return Listener(name, projects, sees_shared_workers=isinstance(actor, Person))


def _refuse_foreign_page(headers: Mapping[str, str]) -> None:
    """A browser sends cookies with a WebSocket from any page; what it does not send is a false Origin."""
    host = headers.get("host", "")
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        raise Refused(FORBIDDEN, "This host is not served here.")
    origin = headers.get("origin")
    if origin is None or origin in settings.CSRF_TRUSTED_ORIGINS:
        return
    try:
        place = urlsplit(origin).netloc
    except ValueError:
        place = ""
    if not place or place.lower() != host.lower():
        raise Refused(FORBIDDEN, "Pages of other sites can not listen.")
