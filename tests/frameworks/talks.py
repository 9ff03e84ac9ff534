"""What the tests of all frameworks do with an agent: ask it through the public door, in several cases at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import evalmeta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.run import CaseResult


def results(agent: object, *cases: object) -> Sequence[CaseResult]:
    """Run cases, all at once; each is a list of utterances, or a mapping as `evaluate` takes it."""
    rows = [case if isinstance(case, dict) else {"turns": [{"input": text} for text in case]} for case in cases]
    return evalmeta.evaluate(rows, agent, options=evalmeta.RunOptions(concurrency=len(rows))).run.cases


def answers(result: CaseResult) -> list[GeneratedData]:
    """Return the answers of a case, one a turn; fail with its error if it has one."""
    assert result.error is None, result.error
    assert result.generated is not None
    return [*(turn.generated for turn in result.earlier), result.generated]
