from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta import evaluate
from evalmeta.formats.files import read_document

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Verdicts = dict[str, str]


@pytest.fixture
def verdicts(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Judges one answer by the checks of a file's first case: the verdict of each check by its label or name."""

    def judge(name: str, content: object, answer: object) -> dict[str, str]:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        result = evaluate(path, lambda _: answer)
        [case, *_] = result.run.cases
        return {check.label or check.name: check.verdict.value for check in case.results}

    return judge


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., list[str]]:
    """The utterances of a file."""

    def read(name: str, content: object) -> list[str]:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        document = read_document(path, label=name, name="test")
        return [turn.utterance for case in document.evaluation.cases for turn in case.turns]

    return read
