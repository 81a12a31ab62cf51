"""Rows as files: CSV that no spreadsheet takes for a formula, and a JSON object on each line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse

FORMATS = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson; charset=utf-8"}
#: A cell that begins so would be computed by a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_file(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], kind: str, name: str) -> HttpResponse:
    """The rows to be saved; times are in UTC, as ISO 8601 has them.

    Args:
        kind: of FORMATS.
        name: of the file, without its ending.
    """
    text = _csv(rows, columns) if kind == "csv" else _ndjson(rows, columns)
    answer = HttpResponse(text, content_type=FORMATS[kind])
    answer["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    answer["Cache-Control"] = "no-store"
    return answer


def _csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in columns])
    return out.getvalue()


def _cell(value: Any) -> Any:
    plain = _plain(value)
    return f"'{plain}" if isinstance(plain, str) and plain.startswith(_FORMULA) else plain


def _ndjson(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    lines = (json.dumps({name: _plain(row[name]) for name in columns}, ensure_ascii=False) for row in rows)
    return "".join(f"{line}\n" for line in lines)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
