"""manage.py secrets rotate: seal what is stored with the present APP_SECRET_KEY."""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.services.rotation import STEP, Tally, rotate


class Command(BaseCommand):
    help = (
        "Secrets in payloads: seal them anew after APP_SECRET_KEY was changed and the old one put into the fallbacks."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        turn = verbs.add_parser("rotate", help="seal everything with the present key; Ctrl-C stops between two steps")
        turn.add_argument("--step", type=int, default=STEP, help="rows in one transaction, 1 to 10000")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["step"] <= 10_000:
            raise CommandError("--step must be from 1 to 10000")
        self._is_stopped = False
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            tally = self._rotate(options["step"])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        text = f"sealed anew: {tally.renewed}, were already: {tally.current}, can not be opened: {tally.unopened}"
        if tally.unopened:
            raise CommandError(f"{text} (such as {tally.last_unopened}); is a key missing in the fallbacks?")
        if self._is_stopped:
            raise CommandError(f"stopped; {text}. Run it again to go on; do not remove the old key yet.")
        self.stdout.write(f"{text}. The old keys can be removed from APP_SECRET_KEY_FALLBACKS.")

    def _rotate(self, step: int) -> Tally:
        tally = Tally()
        for _ in rotate(tally, step=step):
            if self._is_stopped:
                break
        return tally

    def _stop(self, *_: Any) -> None:
        self._is_stopped = True
