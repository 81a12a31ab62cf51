"""Histograms of times: fixed buckets on a log scale, to be added up and to read percentiles from the sum."""

from __future__ import annotations

from collections.abc import Sequence

#: Bucket i holds times up to 2 ** (i / 2) milliseconds: the first up to 1 ms, the last everything above 3.3 hours.
#: sql/fold_deltas.sql sorts into the same buckets, sql/history.sql adds up each of them.
BUCKETS = 48


def upper_bound_ms(bucket: int) -> float:
    """The longest time of a bucket; infinity for the last."""
    return float("inf") if bucket >= BUCKETS - 1 else 2.0 ** (bucket / 2)


def added(histograms: Sequence[Sequence[int]]) -> list[int]:
    """One histogram of all."""
    return [sum(column) for column in zip(*histograms, strict=True)] or [0] * BUCKETS


def percentile_ms(histogram: Sequence[int], share: float) -> float | None:
    """The time that ``share`` (0 to 1) of the entries do not exceed, read between a bucket's bounds; None if empty.

    At most a factor of 1.42 off, since that is how wide a bucket is.
    """
    total = sum(histogram)
    if total == 0:
        return None
    rank, seen = share * total, 0
    for bucket, count in enumerate(histogram):
        if count and seen + count >= rank:
            low = 0.0 if bucket == 0 else upper_bound_ms(bucket - 1)
            high = low if bucket == BUCKETS - 1 else upper_bound_ms(bucket)
            return round(low + (high - low) * max(0.0, rank - seen) / count, 3)
        seen += count
    return upper_bound_ms(BUCKETS - 2)
