"""Reads JSON bodies: what passes is one JSON object, each number exact, nothing said twice. All else is a 400."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from scheduler_project.lib.json_gate import depth

#: Deeper than any payload may be: what is below reaches its field and is refused there, by name.
MAX_DEPTH = 128


class TooLarge(APIException):
    """The body is larger than any request may be."""

    status_code = 413


class StrictJSONParser(BaseParser):
    """JSON as in RFC 8259, in UTF-8, with an object at the top."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The object of the body.

        Raises:
            ParseError: the body is no such JSON.
            TooLarge: it has more bytes than DATA_UPLOAD_MAX_MEMORY_SIZE.
        """
        return parse_object(_read(stream))


def parse_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in ``raw``; ParseError if it is anything else."""
    try:
        text = raw.decode("utf-8")
        found = json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise ParseError("The body is not UTF-8.") from None
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        raise ParseError(f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except ValueError:
        # The interpreter's limit against quadratic conversion; the only other ValueError there is.
        raise ParseError("The body holds a number of more than 4,300 digits.") from None
    if not isinstance(found, dict):
        raise ParseError("The body must be a JSON object.")
    if text.count("[") + text.count("{") > MAX_DEPTH and depth(found) > MAX_DEPTH:
        raise _too_deep()
    return found


def _read(stream: IO[Any]) -> bytes:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
    raw: bytes = stream.read(limit + 1)
    if len(raw) > limit:
        raise TooLarge(f"The body has more than {limit:,} bytes.")
    return raw


def _too_deep() -> ParseError:
    return ParseError(f"The body is nested deeper than {MAX_DEPTH} levels.")


def _refuse(name: str) -> NoReturn:
    raise ParseError(f"The body holds {name}, which JSON has no number for.")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ParseError("The body holds a number too large for any number type.")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Readers of JSON differ on which of the two counts; none of them is what the sender can have meant.
        raise ParseError("The body names a field twice in one object.")
    return found
