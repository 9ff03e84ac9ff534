"""The summary of a run: lines for people, and the run's statistics as JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from evalmeta.model.run import DOUBLE_TO_REVIEW, TO_REVIEW, Run, Summary, Verdict
from evalmeta.model.spending import cost_lines, merged
from evalmeta.report.report import VERDICT_WORDS, Report, coverage_text, ended_text, iterations_of_runs, quarantine_text
from evalmeta.report.results import check_lines, mean_cells, numbered_label, shown_averages
from evalmeta.report.text import aligned, and_more, count, decimal, one_line, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalmeta.model.statistics import CaseCounts, CorrectedRate, RunStatistics


_MANY_ANSWERS: Final = 20
_SHOWN_CASES: Final = 20
_SHOWN_REASONS: Final = 5
_QUARANTINE_WORDS: Final = {Verdict.PASS: "passes", Verdict.FAILURE: "fails", Verdict.ERROR: "ends in an error"}
RATER_LINES: Final = (
    "[score]",
    'rater = "judge"',
    "",
    "[raters.judge]",
    'adapter = "llm"',
    'model = "openai:gpt-4.1-mini"',
)
_WHOLE_MILLISECONDS: Final = 10
_SECOND: Final = 999.5


def heading(report: Report) -> str:
    """Return the definition, the subject and the run on one line."""
    run = report.run
    version = f" {run.subject_version}" if run.subject_version else ""
    again = f", answers of {run.answers_of} judged again" if run.answers_of else ""
    return one_line(f"{run.definition}: subject {run.subject_name}{version}, run {run.id}{again}", chars=300)


def verdict_lines(report: Report) -> Iterator[str]:
    """Yield whether a run passed and why, and the counts of its case results."""
    yield one_line(f"{report.run.definition} {report.outcome()}", chars=400)
    yield f"  {_counts_text(report)}; took {seconds(report.duration)}"


def fact_lines(report: Report) -> Iterator[str]:
    """Yield the rates, the statistics, the means and the undecided results of a run."""
    run, summary, statistics = report.run, report.summary, report.statistics
    # Without iterations and with a required rate of 100 %, the rate of judged results says no more than the counts.
    judged = _judged(report)
    if report.is_repeated or summary.min_pass_rate < 1 or judged:
        yield f"  {_rate(report)}{judged}"
    for line in () if statistics is None else statistics_lines(run, statistics):
        yield f"  {line}"
    yield from _average_lines(report)
    if statistics and statistics.measures:
        yield "  measured, not judged:"
        for measure in statistics.measures:
            yield f"    {one_line(measure.name)}  {decimal(measure.mean)} over {count(measure.count, 'result')}"
    if statistics and statistics.functions:
        yield "  checked by functions:"
        for share in statistics.functions:
            yield f"    {one_line(share.name)}  {percent(share.mean)} of {count(share.count, 'result')} passed"
    yield from (f"  {line}" for line in quarantine_lines(report))
    if again := report.tally.asked_again:
        yield f"  asked twice: {count(again, 'case')}, because a worker died that had not yet reported the answer"
    yield from undecided_lines([report])
    yield from (f"  {line}" for line in check_lines(report.run, report.tally.differences))


def undecided_lines(reports: Sequence[Report]) -> Iterator[str]:
    """Yield why results of runs are undecided, and what to do about it; nothing if there are none."""
    by_name: dict[str, Counter[str]] = {}
    for report in reports:
        for name, reasons in report.undecided_reasons.items():
            by_name[name] = by_name.get(name, Counter()) + reasons
    if not by_name:
        return
    fails = any(report.run.options.undecided == "fail" for report in reports)
    yield f"  undecided results ({'make a case fail' if fails else 'never count as passed'}):"
    for name, reasons in by_name.items():
        yield from _reason_lines(name, reasons)
    summaries = [(report, report.summary) for report in reports if not report.summary.counts_nothing]
    lacking = [report for report, counts in summaries if counts.pass_rate is None or not counts.judges_enough]
    if lacking:
        yield from (f"  {line}".rstrip() for line in way_out_lines(lacking[0]))
    elif not fails and all(report.has_passed for report in reports):
        yield "    Partly judged cases do not fail. To be stricter, use --undecided fail or --min-decided."
        if _needs_rater(by_name):
            yield "    An LLM rater can judge more of them: add one to evalmeta.toml (docs/rating.md) and use --rater."


def _rate(report: Report) -> str:
    """Return the pass rate, and the required one unless a baseline decides instead."""
    summary = report.summary
    rate = "none, no case was judged" if summary.pass_rate is None else percent(summary.pass_rate)
    return f"pass rate {rate}{'' if report.baseline else f' (required: at least {percent(summary.min_pass_rate)})'}"


def _judged(report: Report) -> str:
    """Return how many results were judged, unless it is all of them, none, or the decision says it already."""
    summary = report.summary
    text = coverage_text(summary)
    if summary.pass_rate is None or summary.coverage.share >= 1 or text in report.decision():
        return ""
    return f"; {text}"


def _reason_lines(name: str, reasons: Counter[str]) -> Iterator[str]:
    """Yield why results of a name are undecided: one reason on the line of the name, several below it."""
    head = f"    {one_line(name)}, {count(reasons.total(), 'result')}:"
    if len(reasons) == 1:
        yield f"{head} {next(iter(reasons))}"
        return
    yield head
    for reason, number in shown_reasons(reasons):
        yield f"      {number:,} {reason}"


def shown_reasons(reasons: Counter[str]) -> list[tuple[str, int]]:
    """Return the commonest reasons with their counts, and all others as one."""
    shown = reasons.most_common(_SHOWN_REASONS)
    rest = reasons.total() - sum(number for _, number in shown)
    return [*shown, ("for other reasons", rest)] if rest else shown


def reasons_text(reasons: Counter[str]) -> str:
    """Return `12 undecided: 9 the words do not decide, 3 ...` on one line."""
    several = len(reasons) > 1
    listed = ", ".join(f"{number:,} {reason}" if several else reason for reason, number in shown_reasons(reasons))
    return f"{reasons.total():,} undecided: {listed}"


def way_out_lines(report: Report) -> Iterator[str]:
    """Yield what to do if too few results were judged."""
    summary = report.summary
    lower = "" if summary.judges_enough or summary.pass_rate is None else ", or lower min_decided"
    others = f"correct the expectations that are listed as undecided{lower}."
    reasons = [reason for counts in report.undecided_reasons.values() for reason in counts]
    if any(reason.startswith(DOUBLE_TO_REVIEW) for reason in reasons):
        yield "Replace the example outputs of the doubles with what the actions return, and remove review: true."
        return
    if all(reason.startswith(TO_REVIEW) for reason in reasons):
        yield "Review these test cases: correct what they expect, and remove review: true."
        return
    if not _needs_rater(report.undecided_reasons):
        yield f"Let the agent report what the undecided results lack, or {others}"
        return
    yield "Add an LLM rater to evalmeta.toml, which needs evalmeta[llm] and the model's API key:"
    yield from ("", *(f"  {line}" for line in RATER_LINES), "")
    yield f"Or {others}"


def _needs_rater(reasons: Mapping[str, Counter[str]]) -> bool:
    return any("rater" in reason or "words" in reason for counts in reasons.values() for reason in counts)


def statistics_lines(run: Run, statistics: RunStatistics) -> Iterator[str]:
    """Yield the confidence interval, flaky cases, latency and tokens of a run; few latencies are not shown."""
    repeated = run.options.is_repeated
    if repeated and statistics.interval is not None:
        low, high = map(percent, statistics.interval)
        yield f"95 % confidence interval of the pass rate: {low} to {high}"
    if statistics.corrected is not None:
        yield corrected_text(statistics.corrected)
    if chances := pass_chances(statistics):
        yield chances
    if flaky := statistics.flaky:
        cases = [f"{counts.number} (passed {counts.passed:,} of {counts.decided:,})" for counts in flaky]
        yield f"flaky: {'case' if len(flaky) == 1 else 'cases'} {and_more(cases, _SHOWN_CASES)}"
    if statistics.latency is not None and (repeated or statistics.timed >= _MANY_ANSWERS):
        p50, _, p95, _ = statistics.latency
        yield f"latency: p50 {milliseconds(p50)}, p95 {milliseconds(p95)} of {count(statistics.timed, 'answer')}"
    if statistics.first_token is not None:
        p50, _, p95, _ = statistics.first_token
        yield f"first token: p50 {milliseconds(p50)}, p95 {milliseconds(p95)}"
    if statistics.tokens is not None:
        answers, reported = statistics.answers, statistics.told_tokens
        partly = "" if reported == answers else f", reported by {reported:,} of {count(answers, 'answer')}"
        yield f"tokens: {_known(statistics.tokens.input)} in, {_known(statistics.tokens.output)} out{partly}"
    yield from (one_line(line, chars=300) for line in cost_lines(statistics.spent))


def corrected_text(corrected: CorrectedRate) -> str:
    """Return the share of answers that the judge passed, and what it is without the judge's errors."""
    low, high = map(percent, corrected.interval)
    of_answers = f"the judge passed {percent(corrected.raw)} of {count(corrected.answers, 'answer')}"
    return f"{of_answers}; corrected for the judge's errors {percent(corrected.rate)} (95 %: {low} to {high})"


def pass_chances(statistics: RunStatistics) -> str:
    """Return pass@k and pass^k for the largest k; empty if no case was decided in several iterations."""
    if len(statistics.pass_at) <= 1:
        return ""
    last = statistics.pass_at[-1]
    return (
        f"of {last.k:,} answers to a case, at least one passes: {percent(last.any_passes)} (pass@{last.k}); "
        f"all pass: {percent(last.all_pass)} (pass^{last.k})"
    )


def case_rates(run: Run, statistics: RunStatistics | None) -> Iterator[tuple[CaseCounts, str]]:
    """Yield each case with its pass rate over the iterations, such as `60 % (3 of 5)`, unless it counts by its mean."""
    if statistics is None or not run.options.is_repeated:
        return
    for case in statistics.cases:
        if case.pass_rate is not None and not case.is_averaged:
            yield case, f"{percent(case.pass_rate)} ({case.passed:,} of {case.decided:,})"


def totals(reports: Sequence[Report]) -> str:
    """Return the lines of a suite as one."""
    return "; ".join(map(str.strip, suite_lines(reports)))


def suite_lines(reports: Sequence[Report]) -> Iterator[str]:
    """Yield how many of several runs passed, and the counts of all their case results."""
    nothing = sum(report.summary.counts_nothing for report in reports)
    empty = f", {nothing:,} of them with only cases in quarantine" if nothing else ""
    yield f"{sum(report.counts_as_passed for report in reports):,} of {count(len(reports), 'run')} passed{empty}"
    begun = min((report.run.started for report in reports), default=0)
    took = max((report.run.started + report.duration for report in reports), default=0) - begun
    total = sum(report.summary.total for report in reports)
    repeats = any(report.is_repeated for report in reports)
    cases = count(total, "case result" if repeats else "case")
    yield f"  {cases}: {_case_counts(reports)}; took {seconds(took)}"
    spent = merged(row for report in reports for row in report.tally.spent)
    yield from (f"  {line}" for line in cost_lines(spent))


def passed_count(summaries: Sequence[Summary]) -> str:
    """Return `4 passed, 2 partly judged`."""
    passed, partly = sum(summary.passed for summary in summaries), sum(summary.partly_judged for summary in summaries)
    return f"{passed:,} passed{f', {partly:,} partly judged' if partly else ''}"


def _counts_text(report: Report) -> str:
    total, counts = report.summary.total, _case_counts([report])
    if not report.is_repeated:
        return f"{count(total, 'case')}: {counts}"
    iterations = iterations_of_runs([report.run.options])
    return f"{count(report.case_count, 'case')} in {iterations}, {count(total, 'case result')}: {counts}"


def _case_counts(reports: Sequence[Report]) -> str:
    names = ("failed", "errors", "undecided", "quarantined", "quarantined_passed")
    numbers = {name: sum(getattr(report.summary, name) for report in reports) for name in names}
    failed, errors, undecided, quarantined, held = numbers.values()
    forgiven = sum(report.forgiven_failures for report in reports)
    failures = f"{failed:,} failed" + (f" ({forgiven:,} forgiven)" if forgiven else "")
    apart = f", {quarantined:,} quarantined" if quarantined else ""
    apart += f" ({held:,} passed)" if held else ""
    passed = passed_count([report.summary for report in reports])
    return f"{passed}, {failures}, {count(errors, 'error')}, {undecided:,} undecided{apart}"


def quarantine_lines(report: Report) -> Iterator[str]:
    """Yield the results of cases in quarantine, which do not count, and the cases whose quarantine has ended."""
    cases = sorted(report.tally.quarantined.items())
    for number, (quarantine, verdicts) in cases[:_SHOWN_CASES]:
        if quarantine.has_ended:
            yield f"case {number}: {ended_text(quarantine)}"
            continue
        words = [_QUARANTINE_WORDS.get(verdict, VERDICT_WORDS[verdict]) for verdict, times in verdicts.items() if times]
        yield one_line(f"case {number}: {' and '.join(words)}, {quarantine_text(quarantine)}", chars=400)
    if len(cases) > _SHOWN_CASES:
        yield f"and {count(len(cases) - _SHOWN_CASES, 'more case')} with a quarantine"


def _average_lines(report: Report) -> Iterator[str]:
    averages, left_out = shown_averages(report.summary)
    if not averages:
        return
    yield f"  averages over {'turns and iterations' if report.is_repeated else 'the turns of a case'}:"
    rows = [("case", "name", "mean", "threshold", "over", "")]
    for average in averages:
        over, word = count(average.count, "result"), VERDICT_WORDS[average.verdict]
        rows.append((numbered_label(average), one_line(average.name), *mean_cells(average), over, word))
    yield from (f"    {line}" for line in aligned(rows))
    if left_out:
        yield f"    and {count(left_out, 'more average')}"


def _known(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def milliseconds(duration: float) -> str:
    """Return a duration with its unit: seconds from one second on; measured latencies are rounded to 0.1 ms."""
    if duration >= _SECOND:
        return seconds(duration / 1000)
    if not duration:
        return "< 0.1 ms"
    return f"{duration:.0f} ms" if duration >= _WHOLE_MILLISECONDS else f"{duration:.2g} ms"
