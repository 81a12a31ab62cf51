"""Pure: graphs of jobs that wait for each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def find_cycle(parents: Mapping[str, Sequence[str]]) -> list[str] | None:
    """A cycle as the list of its nodes, the first again at the end, or None.

    Args:
        parents: for each node the nodes it waits for; those that are not keys are outside the graph.
    """
    done: set[str] = set()
    for start in parents:
        if cycle := _walk(start, parents, done):
            return cycle
    return None


def _walk(start: str, parents: Mapping[str, Sequence[str]], done: set[str]) -> list[str] | None:
    """Depth first from ``start``, with a stack of our own: graphs may be deeper than Python's."""
    path: list[str] = []
    stack: list[tuple[str, int]] = [(start, 0)]
    on_path: set[str] = set()
    while stack:
        node, index = stack.pop()
        if index == 0:
            if node in done or node not in parents:
                continue
            path.append(node)
            on_path.add(node)
        if index < len(parents[node]):
            stack.append((node, index + 1))
            child = parents[node][index]
            if child in on_path:
                return [*path[path.index(child) :], child]
            stack.append((child, 0))
        else:
            path.pop()
            on_path.discard(node)
            done.add(node)
    return None
