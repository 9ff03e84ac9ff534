"""What a case counts as: its own verdict, or the stricter one that a run asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from evalmeta.model.run import CaseResult, RunOptions

__all__ = ["counted_verdict"]


def counted_verdict(case: CaseResult, options: RunOptions) -> Verdict:
    """Gives the verdict that is counted: with `undecided="fail"`, what is undecided makes a case fail."""
    if options.undecided != "fail" or case.verdict is Verdict.ERROR:
        return case.verdict
    undecided = case.verdict is Verdict.UNDECIDED or any(result.verdict is Verdict.UNDECIDED for result in case.results)
    return Verdict.FAILURE if undecided else case.verdict
