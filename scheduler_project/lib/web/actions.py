"""What every action of a page does: ask if it must, do it, say what came of it, and lead back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django import forms
from django.http import HttpRequest, HttpResponse

from scheduler_project.lib.errors import DomainError
from scheduler_project.lib.web.confirm import Question, unless_confirmed
from scheduler_project.lib.web.pages import back_to
from scheduler_project.lib.web.toasts import complain, say

#: Does it and answers: with what is to be said, or, where that is not a toast on the page before, with a page.
Do = Callable[[], str | HttpResponse]


class DomainForm(forms.Form):
    """A form whose values the domain may refuse too."""

    #: Name that the domain has for a value -> the field it was typed into.
    field_of: Mapping[str, str] = {}

    def refused(self, error: DomainError) -> None:
        """Put what the domain complains of beside its field; of an item of a list, beside the list's."""
        for detail in error.details:
            field = detail.field.partition("[")[0]
            name = self.field_of.get(detail.field, self.field_of.get(field, field))
            self.add_error(name if name in self.fields else None, detail.message)
        if not error.details:
            self.add_error(None, error.message)


def act(request: HttpRequest, do: Do, *, back: str, question: Question | None = None, then: str = "") -> HttpResponse:
    """Do it once it is confirmed; a refusal is a toast on the page before.

    Args:
        back: path of the page before.
        then: path to go to when it is done, if another.
    """
    if question is not None and (page := unless_confirmed(request, question)) is not None:
        return page
    try:
        done = do()
    except DomainError as error:
        complain(request, error.message)
        return back_to(back)
    return _answer(request, done, then or back)


def fill(request: HttpRequest, form: DomainForm, do: Do, *, then: str = "") -> HttpResponse | None:
    """Do what a sound form asks for; None if it is not sound or the domain refuses it: then the form says why."""
    if not form.is_valid():
        return None
    try:
        done = do()
    except DomainError as error:
        form.refused(error)
        return None
    return _answer(request, done, then)


def _answer(request: HttpRequest, done: str | HttpResponse, path: str) -> HttpResponse:
    if isinstance(done, HttpResponse):
        return done
    say(request, done)
    return back_to(path)
