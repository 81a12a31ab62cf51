"""Confirmation that the server enforces: an action that can not be undone is done only with a token that was signed
for this person, action and target a short while ago. No script can skip it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

MAX_AGE_S = 300
_SALT = "punctual.confirm"


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked before something is done.

    ``target`` is anything JSON can hold that names exactly what is hit: an id, or a filter with its upper bound.
    ``form`` asks for more on the same page; it is bound, and what it says is no part of what the token was signed for.
    """

    action: str
    target: Any
    title: str
    text: str
    button: str
    back: str
    must_type: str = ""
    samples: Sequence[str] = ()
    form: forms.Form | None = None


def unless_confirmed(request: HttpRequest, question: Question) -> HttpResponse | None:
    """The page that asks; None if the request brings the token, the typed name if there is one, and a sound form."""
    token = request.POST.get("confirm_token")
    typed = request.POST.get("typed", "").strip()
    problem = ""
    if token is not None:
        if not _is_good(request, question, token):
            problem = "This question is older than five minutes, or was about something else. Please confirm again."
        elif question.must_type and typed != question.must_type:
            problem = "What you typed is not the name."
        elif question.form is not None and not question.form.is_valid():
            problem = "Something below can not be meant."
        else:
            return None
    own = _OWN | set(() if question.form is None else question.form.fields)
    kept = [(k, v) for k in request.POST for v in request.POST.getlist(k) if k not in own]
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
