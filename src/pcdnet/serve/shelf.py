"""Shelf: what was read or made before, kept while there is room for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shelf(Generic[T]):
    """Values by key, of so many bytes together at most; those that were not asked for longest go first.

    Several threads may use it. What two of them ask for at the same time may be made twice.
    """

    def __init__(self, most_bytes: int, weigh: Callable[[T], int]) -> None:
        """`weigh` says how many bytes a value has."""
        self._most, self._weigh = most_bytes, weigh
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """Bytes of all values."""
        return self._held

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made if it is not there; what fails to be made is not remembered."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        size = self._weigh(value)
        with self._lock:
            if key not in self._values and size <= self._most:
                self._values[key] = value
                self._held += size
            while self._held > self._most:
                _, gone = self._values.popitem(last=False)
                self._held -= self._weigh(gone)
        return value

    def forget(self) -> None:
        """Leave the shelf empty."""
        with self._lock:
            self._values.clear()
            self._held = 0
