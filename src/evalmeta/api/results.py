"""Finished runs: what was asked, what it came to, and the report of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.model.run import Run, Summary
    from evalmeta.model.statistics import RunStatistics
    from evalmeta.report.report import Report

__all__ = ["FinishedRun", "FinishedRuns"]


@dataclass(frozen=True, slots=True, repr=False)
class FinishedRun:
    """A run with its results, and what they come to; `print` shows its report.

    Attributes:
        run: the run; it has no cases when its results were not kept.
        summary: the counts over all its results.
        file: the definition's file, where the run was asked for by one.
    """

    run: Run
    summary: Summary
    file: Path | None = None

    @property
    def succeeded(self) -> bool:
        """Says whether the run is complete, nothing ended in an error, and enough cases passed."""
        from evalmeta.report.report import has_passed  # noqa: PLC0415 - commands have their own way to it

        return has_passed(_report(self))

    @property
    def statistics(self) -> RunStatistics:
        """Gives intervals, percentiles, tokens and the counts of each case, over the results that were kept."""
        from evalmeta.engine.statistics import collect  # noqa: PLC0415 - not everybody asks for them

        return collect(self.run.cases, self.run.options)

    def report(self, result_format: str = "human") -> str:
        """Gives the run as text, in a format of `evalmeta test run --result-format`.

        Raises:
            SettingsError: there is no format of that name, or the package that adds it is broken.
        """
        return _rendered(result_format, [self])

    def __repr__(self) -> str:
        from evalmeta.report.report import decision  # noqa: PLC0415 - as above

        return f"<FinishedRun {self.run.definition} {decision(_report(self))}>"

    def __str__(self) -> str:
        return self.report().rstrip()


class FinishedRuns(tuple[FinishedRun, ...]):
    """Runs that were asked for together, in that order; `print` shows their report."""

    __slots__ = ()

    @property
    def succeeded(self) -> bool:
        """Says whether every run succeeded."""
        return all(each.succeeded for each in self)

    def report(self, result_format: str = "human") -> str:
        """Gives the runs as one text; raises like `FinishedRun.report`."""
        return _rendered(result_format, self)

    def __str__(self) -> str:
        return self.report().rstrip()


def _rendered(result_format: str, finished: Sequence[FinishedRun]) -> str:
    from evalmeta.report import render  # noqa: PLC0415 - as above

    return render(result_format, [_detailed(each) for each in finished])


def _detailed(finished: FinishedRun) -> Report:
    report = _report(finished)
    if report.run.cases:
        report = replace(report, statistics=finished.statistics)
    if finished.file is None:
        return report
    from evalmeta.api.metadata import case_lines, shown  # noqa: PLC0415 - not needed without a file

    return replace(report, file=shown(finished.file), lines=case_lines(finished.file))


def _report(finished: FinishedRun) -> Report:
    from evalmeta.report.report import Report  # noqa: PLC0415 - as above

    run, summary = finished.run, finished.summary
    if not run.cases:
        # Reports miss what a run does not have, and results that were counted but not kept are not missing.
        run = replace(run, total=run.total - summary.total)
    return Report(run, summary)
