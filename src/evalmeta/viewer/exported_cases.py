"""Case results as the JSON of an export: the texts that a page shows, cut and cleaned; what is empty is left out."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from evalmeta import limits
from evalmeta.model.aggregation import coverage_of
from evalmeta.model.run import Verdict
from evalmeta.model.spending import cost_lines
from evalmeta.report.details import metadata_text, why_not_passed
from evalmeta.report.html import duration_text
from evalmeta.report.report import PARTLY
from evalmeta.report.results import both_verdicts, label_of, plain_text, score_text
from evalmeta.report.text import count, json_text, one_line, shorten
from evalmeta.store.case_lists import CaseFilter
from evalmeta.store.judgements import list_marks
from evalmeta.viewer.case import own_trace
from evalmeta.viewer.case_results import result_page
from evalmeta.viewer.case_texts import step_text
from evalmeta.viewer.changes import newest_changes
from evalmeta.viewer.run import cases_of
from evalmeta.viewer.waterfall import MISSING, waterfall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalmeta.model.generated_data import GeneratedData, Tokens
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import CaseResult
    from evalmeta.report.details import Exchange
    from evalmeta.store.case_lists import Place
    from evalmeta.store.judgements import Mark
    from evalmeta.store.run_lists import ListedRun
    from evalmeta.viewer.case_results import ShownResult
    from evalmeta.viewer.changes import CaseChange
    from evalmeta.viewer.pages import Source
    from evalmeta.viewer.waterfall import Row, Turn, Waterfall

CasePlace: TypeAlias = tuple[str, str, int, int]
"""The org, the run, the number and the iteration of a case result."""

_LINE_CHARS: Final = 400
_SINCE_CHARS: Final = 200
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False)


class ExportedCases(NamedTuple):
    """The results that an export has, and their JSON: a list in which results of one case are neighbours."""

    places: frozenset[CasePlace]
    json: str


def export_cases(source: Source, runs: Sequence[ListedRun]) -> ExportedCases:
    """Return the results of runs, up to the limits of an export.

    If there are more, each run has about as many as the others, and those that did not pass come first. In the JSON,
    `run` is the place of the run in `runs`.
    """
    marks: dict[CasePlace, list[Mark]] = {}
    for mark in list_marks(source.database):
        of = mark.place
        marks.setdefault((of.org_url, of.run_id, of.number, of.iteration), []).append(mark)
    changes = newest_changes(source)
    texts: dict[CasePlace, str] = {}
    chars = 0
    for index, case in _in_turn(source, runs):
        run = runs[index]
        place = run.org_url, run.id, case.number, case.iteration
        change = None if case.verdict is Verdict.PASS else changes.get((run.org_url, run.id, case.number))
        values = case_json(case, is_repeated=run.options.is_repeated, marks=marks.get(place, ()), change=change)
        text = _ENCODER.encode({"run": index, **values})
        chars += len(text)
        if len(texts) == limits.MAX_EXPORTED_CASES or chars > limits.MAX_EXPORTED_CHARS:
            break
        texts[place] = text
    # Similar texts near each other make the compressed data small.
    tests = {(run.org_url, run.id): (run.definition, run.started) for run in runs}
    order = sorted(texts, key=lambda place: (tests[place[:2]][0], place[2], tests[place[:2]][1], place[3]))
    return ExportedCases(frozenset(texts), f"[{','.join(texts[place] for place in order)}]")


def _in_turn(source: Source, runs: Sequence[ListedRun]) -> Iterator[tuple[int, CaseResult]]:
    """Yield the results of runs: a few of each run, then a few more of each, those that did not pass first."""
    waiting: deque[tuple[int, ListedRun, Place | None]] = deque((index, run, None) for index, run in enumerate(runs))
    while waiting:
        index, run, after = waiting.popleft()
        page = cases_of(source, [run], CaseFilter(), limit=limits.VIEW_ROWS, after=after)
        yield from ((index, listed.case) for listed in page.cases)
        if page.after:
            waiting.append((index, run, page.after))


def _kept(**values: JsonValue) -> JsonObject:
    """Return the values that are not empty."""
    return {name: value for name, value in values.items() if value not in (None, "", [])}


def case_json(
    case: CaseResult, *, is_repeated: bool, marks: Sequence[Mark] = (), change: CaseChange | None = None
) -> JsonObject:
    """Return what the page of a case shows: also what people say of its results, and how it became worse."""
    drawn, results = waterfall(case), result_page(case, (), {})
    by_result: dict[tuple[str, int], list[str]] = {}
    for mark in marks:
        note = f": {mark.note}" if mark.note else ""
        by_result.setdefault((mark.place.name, mark.place.turn), []).append(
            one_line(f"{mark.words} says {mark.user_name}{note}", chars=limits.MAX_NOTE_CHARS)
        )
    is_partly = case.verdict is Verdict.PASS and coverage_of(case).share < 1
    why = why_not_passed(case) if is_partly or case.verdict is not Verdict.PASS else ""
    error, left_out, trace = case.error or "", results.total - results.end, own_trace(case)
    return _kept(
        number=case.number,
        iteration=case.iteration if is_repeated else None,
        verdict=case.verdict.value,
        state=PARTLY if is_partly else case.verdict.value,
        label=one_line(case.label),
        change=[change.badge.look, change.badge.text, one_line(change.since, chars=_SINCE_CHARS)] if change else [],
        why=f"{case.origin}: {why}" if case.origin else why,
        started=case.started,
        took=duration_text(1000 * (case.ended - case.started)),
        latency=_duration(case.generated.latency_ms if case.generated else None),
        quarantine=f"In quarantine until {case.quarantine.until}: {one_line(case.quarantine.reason)}"
        if case.quarantine
        else "",
        error="" if error == why else shorten(error),
        traceback=shorten(case.traceback),
        costs=[one_line(line, chars=_LINE_CHARS) for line in cost_lines(case.spent)],
        metadata=one_line(metadata_text(case.metadata or {}), chars=_LINE_CHARS),
        turns=[_turn(drawn, turn, results.by_turn.get(turn.exchange.turn, ()), by_result) for turn in drawn.turns],
        more=f"{count(left_out, 'more result')} of this case {'is' if left_out == 1 else 'are'}" if left_out else "",
        trace="" if trace is None else shorten(json_text(trace, indent=2)),
    )


def _turn(
    drawn: Waterfall, turn: Turn, results: Sequence[ShownResult], marks: Mapping[tuple[str, int], Sequence[str]]
) -> JsonObject:
    generated = turn.exchange.generated
    notes = [f"{count(turn.left_out, 'more step')}: the trace of the json report has all."] if turn.left_out else []
    return _kept(
        verdict=turn.verdict.value if turn.verdict else None,
        utterance=shorten(turn.exchange.utterance),
        answer=(shorten(generated.outcome) or "(empty answer)") if generated else None,
        facts=list(_facts(turn.exchange)),
        results=[_result(shown, marks.get((shown.named.name, shown.named.turn), ())) for shown in results],
        steps=[_step(drawn, row) for row in turn.rows],
        notes=[*notes, *([turn.not_kept] if turn.not_kept else [])],
        retrieved=[
            [one_line(passage.uri or "", chars=_LINE_CHARS), shorten(passage.content or "")]
            for passage in (generated.retrieved if generated else None) or ()
        ],
        state=shorten(json_text(generated.state, indent=2)) if generated and generated.state is not None else "",
    )


def _facts(exchange: Exchange) -> Iterator[str]:
    generated = exchange.generated
    if generated is None:
        return
    if generated.topic is not None:
        yield f"topic {one_line(generated.topic) or '(none)'}"
    if generated.handoffs is not None:
        yield f"handoffs {one_line(', '.join(generated.handoffs)) or '(none)'}"
    if generated.actions is not None and not generated.actions:
        yield "no actions"
    yield from _times(generated)
    if generated.tokens:
        yield _tokens(generated.tokens)


def _times(generated: GeneratedData) -> Iterator[str]:
    if generated.latency_ms is not None:
        yield duration_text(generated.latency_ms)
    if generated.first_token_ms is not None:
        yield f"first token {duration_text(generated.first_token_ms)}"


def _tokens(tokens: Tokens) -> str:
    read, written = ("?" if number is None else f"{number:,}" for number in (tokens.input, tokens.output))
    return f"tokens {read} in, {written} out"


def _result(shown: ShownResult, marks: Sequence[str]) -> JsonObject:
    result = shown.named.result
    label = label_of(result.name, result.label) or result.name
    facts = [
        f"score {score_text(result) if result.threshold is not None else f'{result.score:g}'}"
        if result.threshold is not None or result.score is not None
        else "",
        "" if result.detail is None else f"partial {result.detail:g}",
        f"rated by {one_line(result.rater)}" if result.rater else "",
    ]
    has_texts = bool(result.expected) or result.verdict is Verdict.FAILURE
    return _kept(
        verdict="measured" if result.is_measured else result.verdict.value,
        label=one_line(label),
        name=one_line(result.name) if result.name != label else "",
        facts=[fact for fact in facts if fact],
        why=[shorten(text) for text in (result.explanation, both_verdicts(result)) if text],
        error=shorten(result.error) if result.error and result.error != result.explanation else "",
        texts=[shorten(plain_text(result, text)) or "(empty)" for text in (result.expected, result.actual)]
        if has_texts
        else [],
        marks=[*marks],
    )


def _step(drawn: Waterfall, row: Row) -> JsonObject:
    step = row.step
    bars = drawn.missing_bars(row) if row.kind == MISSING else drawn.bars(row.spans)
    return _kept(
        kind=row.kind,
        name=one_line(row.name) or row.kind,
        level=row.level,
        took=_duration(row.duration_ms),
        bars=[[x, width] for x, width in bars],
        facts=[_tokens(step.tokens)] if step and step.tokens else [],
        texts=[_received(step.input), _received(step.output)] if step else [],
        error=shorten(step.error) if step and step.error is not None else "",
    )


def _received(value: JsonValue) -> str:
    return "(not reported)" if value is None else shorten(step_text(value))


def _duration(value: float | None) -> str:
    return "" if value is None else duration_text(value)
