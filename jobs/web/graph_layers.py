"""Pure: a graph of jobs as columns of nodes, big fan-outs folded into one node each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

#: So many siblings of one kind are still drawn one by one.
FOLD_ABOVE = 6
_SWEEPS = 4


class Member(NamedTuple):
    """A job as the graph sees it; ``kind`` is what siblings share that are folded together."""

    id: str
    kind: str
    status: str


@dataclass(slots=True)
class Node:
    """One job, or many that were folded."""

    key: str
    kind: str
    layer: int
    members: list[Member]
    parents: set[str] = field(default_factory=set)
    #: Place in its column, from the top.
    row: float = 0.0

    @property
    def is_folded(self) -> bool:
        """Does it stand for many?"""
        return len(self.members) > 1

    @property
    def counts(self) -> Counter[str]:
        """Its jobs by status."""
        return Counter(member.status for member in self.members)


def layered(members: Iterable[Member], edges: Iterable[tuple[str, str]]) -> list[list[Node]]:
    """The columns from left to right, each from top to bottom.

    Args:
        edges: (the one waited for, the one that waits); those with an unknown end are left out.
    """
    known = {member.id: member for member in members}
    parents: dict[str, set[str]] = {id_: set() for id_ in known}
    for parent, child in edges:
        if parent in known and child in known:
            parents[child].add(parent)
    layers = _layers(parents)
    columns = _folded(known, parents, layers)
    _order(columns)
    return columns


def _layers(parents: Mapping[str, set[str]]) -> dict[str, int]:
    """How far each is from the beginning, by its longest way."""
    children: defaultdict[str, list[str]] = defaultdict(list)
    left = {id_: len(found) for id_, found in parents.items()}
    for child, found in parents.items():
        for parent in found:
            children[parent].append(child)
    layer = dict.fromkeys(parents, 0)
    ready = [id_ for id_, n in left.items() if n == 0]
    while ready:
        id_ = ready.pop()
        for child in children[id_]:
            layer[child] = max(layer[child], layer[id_] + 1)
            left[child] -= 1
            if left[child] == 0:
                ready.append(child)
    return layer


def _folded(
    known: Mapping[str, Member], parents: Mapping[str, set[str]], layers: Mapping[str, int]
) -> list[list[Node]]:
    """From left to right: siblings of one kind that wait for the same nodes become one, if they are many."""
    columns: list[list[Node]] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    node_of: dict[str, str] = {}
    by_layer: defaultdict[int, list[Member]] = defaultdict(list)
    for id_, member in known.items():
        by_layer[layers[id_]].append(member)
    for number, column in enumerate(columns):
        alike: defaultdict[tuple[str, frozenset[str]], list[Member]] = defaultdict(list)
        for member in by_layer[number]:
            alike[member.kind, frozenset(node_of[p] for p in parents[member.id])].append(member)
        for (kind, above), found in alike.items():
            groups: Sequence[list[Member]] = [found] if len(found) > FOLD_ABOVE else [[one] for one in found]
            for group in groups:
                node = Node(group[0].id, kind, number, group, set(above))
                column.append(node)
                node_of.update({member.id: node.key for member in group})
    return columns


def _order(columns: Sequence[list[Node]]) -> None:
    """Put each node near those it is joined to, a few times from either side; then number the rows."""
    places = {node.key: float(i) for column in columns for i, node in enumerate(column)}
    children: defaultdict[str, list[str]] = defaultdict(list)
    for column in columns:
        for node in column:
            for parent in node.parents:
                children[parent].append(node.key)
    for sweep in range(_SWEEPS):
        is_down = sweep % 2 == 0
        for column in columns if is_down else reversed(columns):
            for node in column:
                near = node.parents if is_down else children[node.key]
                node.row = sum(places[key] for key in near) / len(near) if near else places[node.key]
            column.sort(key=lambda node: (node.row, node.kind, node.key))
            middle = (len(column) - 1) / 2
            for i, node in enumerate(column):
                places[node.key] = i - middle
    for column in columns:
        for i, node in enumerate(column):
            node.row = float(i)
