"""The API's schema and a page to read it by, for everybody."""

from __future__ import annotations

from functools import cache

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_project.lib.rest.schema import as_text

#: All from here, no inline script; the viewer draws with inline styles and images.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MAX_AGE_S = 300


@cache
def _as_bytes() -> bytes:
    return as_text().encode()


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """The schema, OpenAPI 3.1."""
    headers = {"Cache-Control": f"public, max-age={MAX_AGE_S}"}
    return HttpResponse(_as_bytes(), content_type="application/json", headers=headers)


class DocsView(SpectacularSwaggerSplitView):
    """The page; its script is a file of its own, so a strict content policy holds."""

    schema = None
    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    template_name = "api_docs.html"
    title = "Punctual API"
    url = "/api/schema"

    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        """The page, or with ``?script`` its script."""
        answer: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        answer["Content-Security-Policy"] = POLICY
        return answer
