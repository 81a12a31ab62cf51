"""One view, two wrappers: the whole page for a visit, its fragment for a live region."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme

#: What changes from one drawing to the next although nothing happened.
_NOISE = re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"|(?<=>)[^<]*(?=</time>)|data-version="[^"]*"')
VERSION_HEADER = "X-Live-Version"


def respond(
    request: HttpRequest, page: str, fragment: str, context: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    """The page, or its fragment alone for htmx and live regions; 204 if a live region has it already.

    Args:
        page: template of the whole page; it includes ``{{ fragment_template }}``.
        fragment: template of what changes while somebody looks.
    """
    if not wants_fragment(request):
        answer = render(request, page, {**context, "fragment_template": fragment}, status=status)
    else:
        html = render_to_string(fragment, dict(context), request=request)
        version = version_of(html)
        if request.headers.get(VERSION_HEADER) == version:
            answer = HttpResponse(status=204)
        else:
            answer = HttpResponse(html, status=status)
        answer[VERSION_HEADER] = version
    patch_vary_headers(answer, ["HX-Request", "Cookie"])
    answer["Cache-Control"] = "no-store"
    return answer


def wants_fragment(request: HttpRequest) -> bool:
    """Is it htmx or a live region that asks? Boosted forms take their part out of the whole page themselves."""
    return "HX-Request" in request.headers and "HX-Boosted" not in request.headers


def version_of(html: str) -> str:
    """A digest of what a fragment says."""
    return hashlib.sha256(_NOISE.sub("", html).encode("utf-8", "replace")).hexdigest()[:16]


def own_path(request: HttpRequest, wanted: str, fallback: str = "/") -> str:
    """The path if it is one of ours; never another host, whatever was written into the address."""
    fits = wanted.startswith("/") and url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if fits else fallback


def back_to(path: str, **query: str) -> HttpResponseRedirect:
    """After a POST: a redirect to what it changed."""
    return HttpResponseRedirect(path + (f"?{urlencode(query)}" if query else ""))
