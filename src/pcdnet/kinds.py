"""Kinds: which objects a model tells apart: by prototype and, where its objects come in a few colours, by colour.

Prototypes of one name are one kind, or share their kinds if they come in several colours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64, Integer

from pcdnet.colours import SEEN, colour_words, comparable
from pcdnet.errors import PcdnetError
from pcdnet.names import Colour, Names


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One kind of objects."""

    id: int
    """Its number, from 0."""
    name: str
    """What it is called; no other kind has this name."""
    group: str
    """What its prototypes are called, whatever their colour."""
    prototypes: tuple[int, ...]
    """The prototypes whose objects it has."""
    colour: Colour | None
    """The colour that tells it from the other kinds of its prototypes; None where there is no other."""


class Kinds:
    """The kinds of a model, in the order of their first prototypes, and then of their colours.

    Examples
    --------
    >>> names = Names(count=3, given={0: "ball", 2: "ball"}, colours={1: ((0.9, 0.1, 0.1), (0.1, 0.8, 0.2))})
    >>> kinds = Kinds(names)
    >>> [kind.name for kind in kinds]
    ['ball', 'prototype 1 red', 'prototype 1 green']
    >>> kinds.ids(np.array([2, 1]), np.array([[1, 1, 1], [0.2, 0.9, 0.2]])).tolist()
    [0, 2]
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        """What the prototypes are called, and which colours they come in."""
        self._kinds: list[Kind] = []
        self._begin: Int64[np.ndarray, "P"] = np.zeros(len(names), np.int64)  # the first kind of every prototype
        self._colours: dict[int, Float[np.ndarray, "n C"]] = {}  # of those that have several, by the first kind
        self._taken: set[str] = set()
        for first in np.unique(names.first).tolist():
            self._add(tuple(np.flatnonzero(names.first == first).tolist()))

    def __len__(self) -> int:
        return len(self._kinds)

    def __getitem__(self, kind: int) -> Kind:
        return self._kinds[kind]

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds)

    def ids(self, prototype_ids: Integer[np.ndarray, "n"], colours: Float[np.ndarray, "n C"]) -> Int64[np.ndarray, "n"]:
        """The kinds of objects, by their prototypes and, where these have several, by the nearest colour."""
        kinds: Int64[np.ndarray, "n"] = self._begin[prototype_ids]
        for begin in set(kinds.tolist()) & set(self._colours):
            own, known = np.flatnonzero(kinds == begin), self._colours[begin]
            if colours.shape[1] != known.shape[1]:
                there = f"objects have colours of {colours.shape[1]} values and kinds of {known.shape[1]}"
                raise PcdnetError(f"{there}; use kinds of the same model")
            apart = comparable(colours[own])[:, None] - comparable(known)
            kinds[own] += np.square(apart).sum(axis=-1).argmin(axis=1)
        return kinds

    def _add(self, prototypes: tuple[int, ...]) -> None:
        """Add the kinds of prototypes that have the same name."""
        begin, group, colours = len(self._kinds), self.names[prototypes[0]], self._pooled(prototypes)
        self._begin[list(prototypes)] = begin
        known: list[tuple[str, Colour | None]] = [(group, None)]
        if len(colours) > 1:
            self._colours[begin] = np.array(colours)
            known = [(f"{group} {word}", colour) for word, colour in zip(colour_words(colours), colours, strict=True)]
        for name, colour in known:
            kind = Kind(id=len(self), name=self._free(name), group=group, prototypes=prototypes, colour=colour)
            self._kinds.append(kind)

    def _pooled(self, prototypes: tuple[int, ...]) -> list[Colour]:
        """The colours of all of the prototypes, without those that another before it has, too."""
        pooled: list[Colour] = []
        for prototype in prototypes:
            own = self.names.colours.get(prototype, ())
            if pooled and own:
                apart = np.linalg.norm(comparable(np.array(own))[:, None] - comparable(np.array(pooled)), axis=-1)
                own = tuple(colour for colour, nearest in zip(own, apart.min(axis=1), strict=True) if nearest >= SEEN)
            pooled += own
        return pooled

    def _free(self, name: str) -> str:
        """The name, with a number if another kind has it: prototypes can be called `red` by people, too."""
        number, free = 1, name
        while free in self._taken:
            number += 1
            free = f"{name} ({number})"
        self._taken.add(free)
        return free
