"""What pages computed last, in memory, because computing it takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Value = TypeVar("Value")


class Memory(Generic[Value]):
    """The last `most` values by their keys; a key stands for all that decides its value."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[Hashable, Value] = {}

    def find(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the value of a key; compute it if it is not known."""
        known = self._values.pop(key, None)
        value = compute() if known is None else known
        self._values[key] = value
        for oldest in [*self._values][: -self._most]:
            self._values.pop(oldest, None)
        return value
