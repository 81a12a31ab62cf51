"""What is read from pages: hidden values, tokens, and what a browser would send."""

from __future__ import annotations

import re


def sent_by(client, path, **changed):
    """What a browser would send from the form of a page, with some fields changed."""
    html = client.get(path).content.decode()
    form = html.split('class="editor"')[1]
    found = {m["n"]: m["v"] for m in re.finditer(r'<input[^>]*?name="(?P<n>\w+)"(?:[^>]*?value="(?P<v>[^"]*)")?', form)}
    for select in re.finditer(r'<select name="(\w+)".*?</select>', form, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', select[0]) or re.search(r'value="([^"]*)"', select[0])
        found[select[1]] = chosen[1] if chosen else ""
    found["payload_template"] = "{}"
    found.pop("csrfmiddlewaretoken", None)
    return {name: value or "" for name, value in found.items()} | changed


def found_in(pattern, html):
    """What the pattern's group matches."""
    match = re.search(pattern, html)
    assert match
    return match[1].replace("&amp;", "&")


def token_of(answer):
    return answer.content.decode().split('name="confirm_token" value="')[1].split('"')[0]
