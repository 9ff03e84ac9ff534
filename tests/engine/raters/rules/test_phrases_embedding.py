from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.raters.rules.phrases import bind_embed, embedded_cosine
from evalmeta.errors import RaterError, SettingsError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_cosine_is_that_of_the_vectors() -> None:
    cosine = embedded_cosine(lambda texts: [(len(text), 1.0) for text in texts], target="m:f")
    assert cosine("ab", "ab") == pytest.approx(1)
    assert cosine("a", "abc") == pytest.approx(4 / math.sqrt(20))


def test_a_vector_of_nothing_is_like_none() -> None:
    assert embedded_cosine(lambda _: [[0.0], [1.0]], target="m:f")("a", "b") == 0.0


def fail(_: list[str]) -> object:
    raise ValueError("no model")


@pytest.mark.parametrize(
    ("embed", "why"),
    [
        (fail, "ValueError: no model"),
        (lambda _: None, "NoneType is no sequence"),
        (lambda _: ["ab", "cd"], "str is no sequence"),
        (lambda _: [[None], [1]], "NoneType is no number"),
        (lambda _: [[1.0]], "1 vectors for 2 texts"),
        (lambda _: [[1.0], [1.0, 2.0]], "1 and 2 numbers"),
        (lambda _: [[], []], "0 and 0 numbers"),
        (lambda _: [[math.nan], [1.0]], "not finite"),
    ],
)
def test_what_is_no_embedding_is_told(embed: object, why: str) -> None:
    assert callable(embed)
    with pytest.raises(RaterError, match=why):
        embedded_cosine(embed, target="m:f")("a", "b")


def test_the_function_is_found_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "own_vectors.py").write_text("def embed(texts):\n    return [[1.0] for _ in texts]\n")
    assert bind_embed("own_vectors:embed", root=tmp_path)("a", "b") == pytest.approx(1)


def test_a_function_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "own_vectors.py").write_text("embed = 5\n")
    with pytest.raises(SettingsError, match="is no function"):
        bind_embed("own_vectors:embed", root=tmp_path)
