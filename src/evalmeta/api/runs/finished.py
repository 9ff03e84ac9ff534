"""Finished runs: their results, their counts and their reports."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.model.tally import DetailedTally, detail, has_passed
from evalmeta.package.files import put_pieces, shown
from evalmeta.report import format_of, render, stream
from evalmeta.report.comparison import comparison_lines, verdict
from evalmeta.report.report import Report, decision
from evalmeta.report.text import blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.model.comparison import Comparison
    from evalmeta.model.run import Run, Summary
    from evalmeta.model.run_options import RunOptions
    from evalmeta.model.statistics import RunStatistics


@dataclass(frozen=True, slots=True, repr=False)
class FinishedRun:
    """A run with its results and their summary; `print` shows its report.

    Attributes:
        run: the run; it has no cases if its results were not kept.
        summary: the counts of all its results.
        file: the definition's file, if the run was started from a file.
        tally: the summary's counts in detail, where the results were counted.

    It is true if it has passed: `assert evaluate(...)`.
    """

    run: Run
    summary: Summary
    file: Path | None = None
    tally: DetailedTally | None = field(default=None, compare=False)

    @classmethod
    def of(cls, run: Run, options: RunOptions | None = None) -> FinishedRun:
        """Return a run with its summary; `options` decide what passes, instead of the run's own."""
        options = run.options if options is None else replace(options, setup=run.options.setup)
        tally = detail(run.cases, options)
        return cls(run, tally.summary(), tally=tally)

    @property
    def succeeded(self) -> bool:
        """Return whether the run has passed: it is complete, without errors, judged enough, and enough cases passed."""
        return has_passed(_counted(self), self.summary)

    def __bool__(self) -> bool:
        return self.succeeded

    @property
    def statistics(self) -> RunStatistics:
        """Return intervals, percentiles, tokens and the counts of each case, over the results that were kept."""
        from evalmeta.engine.statistics import statistics_of

        return statistics_of(self.tally or detail(self.run.cases, self.run.options))

    def counted(self) -> FinishedRun:
        """Return the run with its counts in detail."""
        return self if self.tally else replace(self, tally=detail(self.run.cases, self.run.options))

    def report(self, result_format: str = "human") -> str:
        """Return the run as text, in a format of `evalmeta test run --result-format`.

        Raises:
            SettingsError: there is no format with this name, or the package that adds it is broken.
        """
        return FinishedRuns([self]).report(result_format)

    def save(self, path: Path | str, result_format: str | None = None) -> None:
        """Write the report to a file, case by case; an earlier file is replaced when the new one is complete.

        Args:
            path: The file.
            result_format: As for `report`; by default, the format of the file's extension.

        Raises:
            SettingsError: the format is unknown, or the package that adds it is broken.
            ProjectError: the file cannot be written.
        """
        FinishedRuns([self]).save(path, result_format)

    def compare(self, before: FinishedRun) -> ComparedRuns:
        """Compare with an earlier run of the same cases, as `evalmeta test compare` does.

        Both runs need the results that `keep_results=False` drops.
        """
        from evalmeta.api.runs.comparisons import compare_runs

        return ComparedRuns(compare_runs(before.run, self.run))

    def _repr_html_(self) -> str:
        """Return the run for a notebook."""
        return FinishedRuns([self])._repr_html_()

    def __repr__(self) -> str:
        return f"<FinishedRun {self.run.definition} {decision(_report(self))}>"

    def __str__(self) -> str:
        return self.report().rstrip()


class FinishedRuns(tuple[FinishedRun, ...]):
    """Runs that were evaluated together, in that order; `print` shows their report.

    They are true if there are any, and every run has passed.
    """

    __slots__ = ()

    @property
    def succeeded(self) -> bool:
        """Return whether every run succeeded."""
        return all(run.succeeded for run in self)

    def __bool__(self) -> bool:
        return len(self) > 0 and self.succeeded

    def report(self, result_format: str = "human") -> str:
        """Return the runs as one text; raises like `FinishedRun.report`."""
        return render(result_format, [_detailed(run) for run in self])

    def save(self, path: Path | str, result_format: str | None = None) -> None:
        """Write one report on all runs to a file; arguments and errors are those of `FinishedRun.save`."""
        path = Path(path)
        pieces = stream(result_format or format_of(path.name), [_detailed(run) for run in self])
        put_pieces(path, (block.encode() for block in blocks(pieces)))

    def _repr_html_(self) -> str:
        """Return the runs for a notebook."""
        return notebook_html(self)

    def __str__(self) -> str:
        return self.report().rstrip()


@dataclass(frozen=True, slots=True, repr=False)
class ComparedRuns:
    """A comparison of two runs; `print` shows its lines, and a notebook shows a table.

    Attributes:
        comparison: each case before and after, and the test of significance.
    """

    comparison: Comparison

    @property
    def is_worse(self) -> bool:
        """Return whether a case broke, or all cases together became significantly worse."""
        return self.comparison.is_regression()

    def _repr_html_(self) -> str:
        """Return the comparison for a notebook."""
        from evalmeta.report.html import comparison_html

        return comparison_html(self.comparison)

    def __repr__(self) -> str:
        return f"<ComparedRuns {verdict(self.comparison)}>"

    def __str__(self) -> str:
        return "\n".join(line.text for line in comparison_lines(self.comparison))


def notebook_html(runs: Iterable[FinishedRun], figures: Sequence[tuple[str, str]] = ()) -> str:
    """Return runs for a notebook, and further figures by their names."""
    from evalmeta.report.html import runs_html

    return runs_html([_report(run) for run in runs], figures)


def _detailed(finished: FinishedRun) -> Report:
    finished = finished.counted() if finished.run.cases else finished
    report = _report(finished)
    if report.run.cases:
        report = replace(report, statistics=finished.statistics)
    if finished.file is None:
        return report
    from evalmeta.api.discovery import reading_at
    from evalmeta.api.runs.case_lines import case_places

    places = case_places(finished.file, reading=reading_at(finished.file))
    return replace(report, file=shown(finished.file), lines=places.lines, files=places.files)


def _report(finished: FinishedRun) -> Report:
    return Report(_counted(finished), finished.summary, counted=finished.tally)


def _counted(finished: FinishedRun) -> Run:
    """Return the run; results that were counted but not kept are not missing."""
    run = finished.run
    return run if run.cases else replace(run, total=run.total - finished.summary.total)
