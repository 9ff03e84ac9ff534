"""What the tests of all frameworks do with an agent: ask it through the public door, in several cases at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import evalmeta
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.interfaces import ListedSubject
from evalmeta.engine.subjects import subject_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.run import CaseResult


def results(agent: object, *cases: object) -> Sequence[CaseResult]:
    """Run cases, all at once; each is a list of utterances, or a mapping as `evaluate` takes it."""
    rows = [case if isinstance(case, dict) else {"turns": [{"input": text} for text in case]} for case in cases]
    return evalmeta.evaluate(rows, agent, options=evalmeta.RunOptions(concurrency=len(rows))).run.cases


def parts(agent: object) -> list[str]:
    """Return the topics of an agent, and its actions as `topic.name`; of an agent without others, as `.name`."""
    subject = subject_of(agent, root=Path())
    assert isinstance(subject, ListedSubject)
    inventory = run_to_end(subject.inventory())
    return [f"{part.topic}.{part.name}" if part.kind == "action" else part.name for part in inventory.parts]


def answers(result: CaseResult) -> list[GeneratedData]:
    """Return the answers of a case, one a turn; fail with its error if it has one."""
    assert result.error is None, result.error
    assert result.generated is not None
    return [*(turn.generated for turn in result.earlier), result.generated]
