from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.bound_functions import function_fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable


def _one_of(words: object, client: object = None) -> Callable[[str], bool]:
    def check(answer: str) -> bool:
        return (answer, client) == words

    return check


def _turned(check: Callable[[str], bool]) -> Callable[[str], bool]:
    @wraps(check)
    def turned(answer: str) -> bool:
        return not check(answer)

    return turned


@dataclass(slots=True)
class _Limit:
    most: int

    def __call__(self, answer: str) -> bool:
        return len(answer) <= self.most


def _under(most: int, answer: str, *, least: int = 0) -> bool:
    return least <= len(answer) <= most


@pytest.mark.parametrize(
    ("same", "other"),
    [
        ((_one_of(["a"]), _one_of(["a"])), _one_of(["b"])),
        ((_one_of({"a", "b"}), _one_of({"b", "a"})), _one_of({"a"})),
        ((_one_of("a", object()), _one_of("a", object())), _one_of("b", object())),
        ((_Limit(1), _Limit(1)), _Limit(2)),
        ((_Limit(1).__call__, _Limit(1).__call__), _Limit(2).__call__),
        ((_one_of(_Limit(1)), _one_of(_Limit(1))), _one_of(_Limit(2))),
        ((partial(_under, 1), partial(_under, 1)), partial(_under, 1, least=1)),
        ((_turned(_one_of("a")), _turned(_one_of("a"))), _turned(_one_of("b"))),
        ((_turned(_one_of("a")), _turned(_one_of("a"))), _one_of("a")),
        (("a".startswith, "a".startswith), "b".startswith),
    ],
)
def test_the_code_of_a_function_and_what_is_bound_to_it_decide(same: tuple[object, object], other: object) -> None:
    first, second = map(function_fingerprint, same)
    assert first == second != function_fingerprint(other)


def test_a_global_value_that_the_function_uses_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    before = function_fingerprint(_uses_global)
    monkeypatch.setattr(f"{__name__}._MOST", 4)
    assert function_fingerprint(_uses_global) != before


_MOST = 3


def _uses_global(answer: str) -> bool:
    return len(answer) <= _MOST


def test_values_that_contain_themselves_are_read_once() -> None:
    words: list[object] = ["a"]
    words.append(words)
    assert function_fingerprint(_one_of(words))


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    code = f"from {__name__} import *; from {__name__} import _one_of, _Limit; "
    code += "print(function_fingerprint(_one_of({'a', 'b', ('c', 1)}, object())), function_fingerprint(_Limit(3)))"
    run = partial(subprocess.check_output, [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path}; {code}"])
    assert run() == run()
