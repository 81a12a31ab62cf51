"""The collector of garbage in a process that answers people: it must not walk all that is loaded while one waits."""

from __future__ import annotations

import gc

#: New objects before the youngest are looked through, and how many such looks before the next older are. A large page
#: makes some thousands, of which hardly any is part of a cycle; with Python's own figures (700, 10, 10) one page in
#: twelve paid for a walk through everything, which doubled its time.
THRESHOLDS = (10_000, 50, 50)


def spare_what_stays() -> None:
    """To be called once, when everything is imported: what is there by now is no garbage and is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
