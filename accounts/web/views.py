"""Sign in, register, sign out; and what a viewer chooses about how pages look."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import User
from accounts.services import log_in, register_user
from accounts.web.forms import RegisterForm, SignInForm
from orgs.throttling import take_login
from scheduler_project.lib.errors import DomainError
from scheduler_project.lib.web import viewer
from scheduler_project.lib.web.pages import own_path

BACKEND = "django.contrib.auth.backends.ModelBackend"
_MISSING = "Fill in the e-mail address and the password."


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    wanted = own_path(request, request.POST.get("next") or request.GET.get("next", ""))
    if request.method != "POST":
        return redirect(wanted) if request.user.is_authenticated else _page(request, "login", wanted)
    form = SignInForm(request.POST)
    if not form.is_valid():
        return _page(request, "login", wanted, _MISSING, 422)
    wait_s = take_login(request, form.cleaned_data["email"])
    if wait_s is not None:
        return _slow_down(request, "login", wanted, wait_s)
    try:
        user = log_in(**form.cleaned_data)
    except DomainError as error:
        return _page(request, "login", wanted, error.message, 401)
    login(request, user, backend=BACKEND)
    return redirect(wanted)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def register(request: HttpRequest) -> HttpResponse:
    wanted = own_path(request, request.POST.get("next") or request.GET.get("next", ""))
    if request.method != "POST":
        return redirect(wanted) if request.user.is_authenticated else _page(request, "register", wanted)
    form = RegisterForm(request.POST)
    if not form.is_valid():
        return _page(request, "register", wanted, _MISSING, 422)
    wait_s = take_login(request, form.cleaned_data["email"])
    if wait_s is not None:
        return _slow_down(request, "register", wanted, wait_s)
    try:
        user: User = register_user(**form.cleaned_data)
    except DomainError as error:
        text = " ".join(f"{d.field.replace('_', ' ').capitalize()} {d.message}." for d in error.details)
        return _page(request, "register", wanted, text or error.message, 422)
    login(request, user, backend=BACKEND)
    return redirect(wanted)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("login")


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Zone, theme and pace, kept in cookies; unknown values are ignored."""
    answer = redirect(own_path(request, request.POST.get("next", "")))
    allowed = {viewer.ZONE: ("", *viewer.zones()), viewer.THEME: viewer.THEMES, viewer.PACE: viewer.PACES}
    for name, values in allowed.items():
        value = request.POST.get(name)
        if value == "":
            answer.delete_cookie(name)
        elif value in values:
            answer.set_cookie(name, value, viewer.A_YEAR_S, samesite="Lax", secure=settings.SESSION_COOKIE_SECURE)
    return answer


def _page(request: HttpRequest, name: str, wanted: str, problem: str = "", status: int = 200) -> HttpResponse:
    typed = {key: request.POST.get(key, "") for key in ("email", "full_name")}
    context = {"next": wanted, "problem": problem, "typed": typed}
    return render(request, f"accounts/{name}.html", context, status=status)


def _slow_down(request: HttpRequest, name: str, wanted: str, wait_s: float) -> HttpResponse:
    seconds = max(1, round(wait_s))
    answer = _page(request, name, wanted, f"Too many tries. Try again in {seconds} s.", 429)
    answer["Retry-After"] = str(seconds)
    return answer
