from __future__ import annotations

import pytest

from engine.builders import exchange
from evalmeta.engine.scorers.quality import score_quality
from evalmeta.model.definition import Expectation
from evalmeta.model.generated import GeneratedData
from evalmeta.model.run import Verdict


@pytest.mark.parametrize("name", ["coherence", "completeness", "conciseness", "instruction_following", "factuality"])
def test_quality_is_undecided_without_an_llm_rater(name: str) -> None:
    result = score_quality(Expectation(name), exchange(GeneratedData("Shipped.")))
    assert (result.verdict, result.score, result.actual) == (Verdict.UNDECIDED, None, "Shipped.")
    assert result.explanation == f"{name} needs an LLM rater, and none judges this run"
