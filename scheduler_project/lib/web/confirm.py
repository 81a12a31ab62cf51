"""Confirmation that the server enforces: an action that can not be undone is done only with a token that was signed
for this person, action and target a short while ago. No script can skip it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

MAX_AGE_S = 300
_SALT = "punctual.confirm"


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked before something is done.

    ``target`` is anything JSON can hold that names exactly what is hit: an id, or a filter with its upper bound.
    """

    action: str
    target: Any
    title: str
    text: str
    button: str
    back: str
    must_type: str = ""
    samples: Sequence[str] = ()


def unless_confirmed(request: HttpRequest, question: Question) -> HttpResponse | None:
    """The page that asks; None if the request brings the token, and the typed name if one is needed."""
    token = request.POST.get("confirm_token")
    typed = request.POST.get("typed", "").strip()
    problem = ""
    if token is not None:
        if not _is_good(request, question, token):
            problem = "This question is older than five minutes, or was about something else. Please confirm again."
        elif question.must_type and typed != question.must_type:
            problem = "What you typed is not the name."
        else:
            return None
    kept = [(k, v) for k in request.POST for v in request.POST.getlist(k) if k not in _OWN]
    context = {"question": question, "token": sign(request, question), "problem": problem, "kept": kept}
    return render(request, "shared/confirm.html", context, status=422 if problem else 200)


_OWN = frozenset({"confirm_token", "typed", "csrfmiddlewaretoken"})


def sign(request: HttpRequest, question: Question) -> str:
    """The token of a question for whoever is signed in."""
    return signing.dumps(_facts(request, question), salt=_SALT)


def _is_good(request: HttpRequest, question: Question, token: str) -> bool:
    try:
        return bool(signing.loads(token, salt=_SALT, max_age=MAX_AGE_S) == _facts(request, question))
    except signing.BadSignature:
        return False


def _facts(request: HttpRequest, question: Question) -> list[str]:
    target = json.dumps(question.target, sort_keys=True, default=str)
    return [str(request.user.pk), question.action, hashlib.sha256(target.encode()).hexdigest()]
