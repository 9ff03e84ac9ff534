from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.raters.embedding import bind_embed, embedded_cosine
from evalmeta.errors import RaterError, SettingsError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_cosine_is_that_of_the_vectors() -> None:
    cosine = embedded_cosine(lambda texts: [(len(text), 1.0) for text in texts], target="m:f")
    assert cosine("ab", "ab") == pytest.approx(1)
    assert cosine("a", "abc") == pytest.approx(4 / math.sqrt(20))


def test_a_zero_vector_has_no_similarity() -> None:
    assert embedded_cosine(lambda _: [[0.0], [1.0]], target="m:f")("a", "b") == 0.0


def fail(_: list[str]) -> object:
    raise ValueError("no model")


@pytest.mark.parametrize(
    ("embed", "why"),
    [
        (fail, "ValueError: no model"),
        (lambda _: None, "NoneType is not a sequence"),
        (lambda _: ["ab", "cd"], "str is not a sequence"),
        (lambda _: [[None], [1]], "NoneType is not a number"),
        (lambda _: [[1.0]], "1 vectors for 2 texts"),
        (lambda _: [[1.0], [1.0, 2.0]], "1 and 2 numbers"),
        (lambda _: [[], []], "0 and 0 numbers"),
        (lambda _: [[math.nan], [1.0]], "not finite"),
    ],
)
def test_invalid_embeddings_are_an_error(embed: object, why: str) -> None:
    assert callable(embed)
    with pytest.raises(RaterError, match=why):
        embedded_cosine(embed, target="m:f")("a", "b")


def test_the_function_is_found_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "own_vectors.py").write_text("def embed(texts):\n    return [[1.0] for _ in texts]\n")
    assert bind_embed("own_vectors:embed", root=tmp_path)("a", "b") == pytest.approx(1)


def test_a_missing_function_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "own_vectors.py").write_text("embed = 5\n")
    with pytest.raises(SettingsError, match="is not a function"):
        bind_embed("own_vectors:embed", root=tmp_path)
