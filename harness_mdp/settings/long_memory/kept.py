"""A bounded memory of what is costly to make and is needed at every step of a task."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Kept"]

T = TypeVar("T")


class Kept(Generic[T]):
    """The `most` values used last, by key (`functools.lru_cache` would need the value's source as a hashable key)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str, make: Callable[[], T]) -> T:
        """The value under `key`, made if it is not there."""
        if key not in self._values:
            self._values[key] = make()
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]

    def __len__(self) -> int:
        return len(self._values)
