"""The evaluations that this process has read lately, so that the steps of a run do not parse the same content again."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from evalmeta.model.evaluation import Evaluation


_EVALUATIONS: Final[OrderedDict[Hashable, Evaluation]] = OrderedDict()
_LOCK: Final = Lock()


def evaluation_once(key: Hashable, read: Callable[[], Evaluation]) -> Evaluation:
    """Return the evaluation with a key, which must identify its content; it is read if it was not read lately."""
    with _LOCK:
        found = _EVALUATIONS.get(key)
    return found or remember(key, read())


def remember(key: Hashable, evaluation: Evaluation) -> Evaluation:
    """Return an evaluation and keep it if its cases are in memory; forget the oldest ones if there are many cases."""
    if isinstance(evaluation.cases, tuple):
        with _LOCK:
            _EVALUATIONS[key] = evaluation
            _EVALUATIONS.move_to_end(key)
            while _total() > limits.MAX_REMEMBERED_CASES:
                _EVALUATIONS.popitem(last=False)
    return evaluation


def _total() -> int:
    return sum(len(each.cases) for each in _EVALUATIONS.values() if isinstance(each.cases, tuple))
