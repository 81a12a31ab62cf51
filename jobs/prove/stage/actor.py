"""The process in which one proof runs, connected to the scratch database; it tells the command by lines of JSON.

``python -m jobs.prove.stage.actor PROOF SIZES [GUARD]``
"""

from __future__ import annotations

import json
import os
import signal
import sys
from types import FrameType
from typing import Any

MARK = "prove "


def tell(kind: str, **fields: Any) -> None:
    """One message to the command that started us."""
    sys.stdout.write(MARK + json.dumps({"kind": kind, **fields}) + "\n")
    sys.stdout.flush()


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    """Run the proof and tell the figures."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    import django

    django.setup()
    from jobs.handlers.registry import discover
    from jobs.prove.registry import find
    from jobs.prove.stage.proof import NotPossible, NotReached
    from jobs.prove.stage.stage import Stage, closing

    discover()
    _, name, sizes, guard, *_rest = [*sys.argv, ""]
    proof = find(name)
    if guard:
        proof.breaks[guard]()
    url = os.environ["APP_DATABASE_URL"]
    with closing(Stage(name, url, json.loads(sizes), guard, lambda kind, text: tell(kind, text=text))) as stage:
        try:
            figures = proof.run(stage)
        except NotReached as error:
            tell("missed", text=str(error))
        except NotPossible as error:
            tell("skipped", text=str(error))
        else:
            fields = [[f.name, float(f.value), f.unit, f.target, f.is_most] for f in figures]
            tell("figures", figures=fields)


if __name__ == "__main__":
    main()
