from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.formats.document import Document
from evalmeta.formats.files import document_once
from evalmeta.model.evaluation import Case, Evaluation, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pytest


def asked(cases: Iterable[Case], key: str, numbers: Iterator[int]) -> str:
    """Return which reading a document is from."""
    return document_once(key, lambda: Document(Evaluation(f"reading {next(numbers)}", "Desk", cases))).evaluation.name


CASES = (Case(1, (Turn("Hello"),)), Case(2, (Turn("Goodbye"),)))


def test_the_same_content_is_read_once() -> None:
    numbers = count(1)
    assert [asked(CASES, key, numbers) for key in ("once", "other", "once")] == ["reading 1", "reading 2", "reading 1"]


def test_the_oldest_are_forgotten_when_there_are_many_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_REMEMBERED_CASES", 4)
    numbers = count(1)
    found = [asked(CASES, key, numbers)[-1] for key in ("a", "b", "c", "b", "a")]
    assert found == ["1", "2", "3", "2", "4"]


def test_cases_that_can_be_iterated_only_once_are_not_kept() -> None:
    numbers = count(1)
    assert [asked(iter(CASES), "iterator", numbers) for _ in range(2)] == ["reading 1", "reading 2"]
