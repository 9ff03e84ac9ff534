"""The Connect API's results of agent tests ("Get Test Results" of the Testing API), as values and as JSON.

evalmeta adds keys where the API has none: `evalmeta` beside `status`; `iteration`, `verdict`, `name` and
`earlierTurns` in a case; `partialScore`, `rater`, `threshold`, `turn` and `measured` in a result. Over HTTP,
text is HTML-escaped, as in Salesforce's orgs; in files it is plain, and `evalmeta` says so.
"""

from __future__ import annotations

import binascii
import html
import math
from base64 import b64decode, b64encode
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, get_args

from evalmeta import limits
from evalmeta.errors import MessageUnreadable
from evalmeta.model.aggregation import case_verdict
from evalmeta.model.run import (
    ActionMatch,
    CaseResult,
    EarlierTurn,
    Matches,
    Origin,
    Run,
    RunOptions,
    RunStatus,
    Scoring,
    ScoringProfile,
    TestResult,
    TopicMatch,
    Verdict,
)
from evalmeta.protocol.generated_data import read_generated, write_generated
from evalmeta.protocol.json_fields import (
    from_timestamp,
    integer,
    list_of_objects,
    number,
    object_at,
    optional_text,
    text,
    texts,
    to_timestamp,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue

    Translation = Callable[[str], str]


_ESCAPED_TEXTS: Final = ("actualValue", "expectedValue", "metricExplainability")
STANDS_FOR: Final = "standsFor"
"""The key that marks a placeholder case."""
_LATENCY: Final = "output_latency_milliseconds"
_RESULTS: Final = {Verdict.PASS: "PASS", Verdict.FAILURE: "FAILURE"}
# The error of a rating without an expected value; the sf CLI requests such a rating for every case.
_SKIPPED: Final = "missing expected input"
JUDGED: Final = frozenset({"", "COMPLETED", "ERROR"})
"""The statuses of finished cases."""
# Clients read these keys without a check, so a case without an answer has them all.
_NO_DATA: Final[JsonObject] = {
    "type": "AGENT",
    "topic": None,
    "actionsSequence": "[]",
    "invokedActions": "",
    "outcome": None,
    "sessionId": None,
    "latencyMilliseconds": None,
}
_VERDICTS: Final = {
    "PASS": Verdict.PASS,
    "PASSED": Verdict.PASS,
    "FAILURE": Verdict.FAILURE,
    "FAILED": Verdict.FAILURE,
    "FAIL": Verdict.FAILURE,
    "ERROR": Verdict.ERROR,
    # The words of instruction_following.
    "HIGH": Verdict.PASS,
    "LOW": Verdict.FAILURE,
}


def write_run(run: Run, *, escape: bool, placeholders: Sequence[CaseResult] = ()) -> JsonObject:
    """Write a run as the results object, escaped for HTTP or plain for files.

    Over HTTP, an ERROR run is COMPLETED too, because Salesforce's clients would poll it forever; `evalmeta` has the
    real status. `placeholders` are for clients that need a result for every expectation; `read_run` removes them.
    """
    return {
        "status": RunStatus.COMPLETED.value if escape and run.status is RunStatus.ERROR else run.status.value,
        "startTime": to_timestamp(run.started),
        "endTime": None if run.ended is None else to_timestamp(run.ended),
        "errorMessage": run.error,
        "subjectName": run.subject_name,
        "testCases": list(write_cases(run, escape=escape, placeholders=placeholders)),
        "evalmeta": {
            "runId": run.id,
            "definition": run.definition,
            "status": run.status.value,
            "subjectVersion": run.subject_version,
            "total": run.total,
            "answersOf": run.answers_of,
            "options": write_options(run.options),
            "plainText": not escape,
        },
    }


def write_cases(run: Run, *, escape: bool, placeholders: Sequence[CaseResult] = ()) -> Iterator[JsonObject]:
    """Yield the cases of the results object; arguments are those of `write_run`."""
    by_case = {(each.iteration, each.number): {**write_case(each), STANDS_FOR: "nothing"} for each in placeholders}
    for each in run.cases:
        placeholder = by_case.pop((each.iteration, each.number), None)
        written = {**placeholder, STANDS_FOR: "a case"} if placeholder else write_case(each)
        yield _translate_case(written, escape_html) if escape else written
    for left in by_case.values():
        yield _translate_case(left, escape_html) if escape else left


def read_run(source: JsonObject, *, run_id: str = "", definition: str = "") -> Run:
    """Read a results object in any known variant; raise MessageUnreadable if it is not one, or nested too deeply.

    It may be inside `{status, result, warnings}`, HTML-escaped or plain, with lists as lists or as text, and
    with or without data. Unfinished cases are left out.
    """
    source = object_at(source, "result") or source
    if not isinstance(source.get("testCases"), list):
        raise MessageUnreadable("it is not a results object: it has no list of testCases")
    own = object_at(source, "evalmeta")
    status = run_status(text(own, "status") or text(source, "status"))
    is_over = status in {RunStatus.COMPLETED, RunStatus.ERROR}
    cases = tuple(
        read_case(_plain_case(each, own), place=place)
        for place, each in enumerate(list_of_objects(source, "testCases"), 1)
        # A case without a status of the end has no result yet, or never will because its run was canceled.
        if each.get(STANDS_FOR) != "nothing" and (is_over or text(each, "status").upper() in JUDGED)
    )
    return run_of(source, status, cases, run_id=run_id, definition=definition)


def run_of(
    source: JsonObject, status: RunStatus, cases: tuple[CaseResult, ...], *, run_id: str, definition: str
) -> Run:
    """Return the run of a results object, without its cases; `run_id` and `definition` are defaults."""
    own = object_at(source, "evalmeta")
    return Run(
        id=text(own, "runId") or run_id,
        definition=text(own, "definition") or definition,
        subject_name=text(source, "subjectName") or text(own, "subject"),
        subject_version=optional_text(own, "subjectVersion"),
        status=status,
        started=from_timestamp(text(source, "startTime")) or 0.0,
        ended=from_timestamp(text(source, "endTime")),
        error=optional_text(source, "errorMessage"),
        total=integer(own, "total", len(list_of_objects(source, "testCases"))),
        answers_of=optional_text(own, "answersOf"),
        options=read_options(object_at(own, "options")),
        cases=cases,
    )


def run_status(word: str) -> RunStatus:
    """Return a status; an unknown word means that the run is in progress."""
    return RunStatus.__members__.get(word.upper(), RunStatus.IN_PROGRESS)


def escape_html(plain: str) -> str:
    """Escape text as orgs do: Salesforce's agents library does not decode `&#x27;`."""
    return html.escape(plain, quote=True).replace("&#x27;", "&#39;")


def _plain_case(case: JsonObject, own: JsonObject) -> JsonObject:
    """Return a case with plain text; evalmeta's results say whether they are escaped, others may be anywhere."""
    if own.get("plainText") is True:
        return case
    return _translate_case(case, html.unescape, also=() if own else ("outcome", "generatedResponse", "topic"))


def _translate_case(case: JsonObject, translate: Translation, *, also: tuple[str, ...] = ()) -> JsonObject:
    inputs, generated = dict(object_at(case, "inputs")), dict(object_at(case, "generatedData"))
    _translate(inputs, ("utterance",), translate)
    _translate(generated, ("actionsSequence", "invokedActions", *also), translate)
    results = []
    for result in list_of_objects(case, "testResults"):
        copy = dict(result)
        _translate(copy, _ESCAPED_TEXTS, translate)
        results.append(copy)
    return {**case, "inputs": inputs, "generatedData": generated, "testResults": results}


def _translate(target: dict[str, JsonValue], keys: tuple[str, ...], translate: Translation) -> None:
    for key in keys:
        value = target.get(key)
        if isinstance(value, str):
            target[key] = translate(value)


def write_case(case: CaseResult) -> JsonObject:
    """Write one case result as plain JSON values."""
    started, ended = to_timestamp(case.started), to_timestamp(case.ended)
    times = {"startTime": started, "endTime": ended}
    earlier: list[JsonValue] = [
        {"utterance": each.utterance, "generatedData": write_generated(each.generated)} for each in case.earlier
    ]
    return {
        "testNumber": case.number,
        "status": "ERROR" if case.generated is None else "COMPLETED",
        **times,
        "errorMessage": case.error,
        "inputs": {"utterance": case.utterance},
        "generatedData": _NO_DATA if case.generated is None else write_generated(case.generated),
        "testResults": [_write_result(each, times) for each in case.results],
        "iteration": case.iteration,
        "verdict": case.verdict.value,
        **({"name": case.label} if case.label else {}),
        **({"earlierTurns": earlier} if earlier else {}),
        **({"traceback": case.traceback} if case.traceback else {}),
    }


def read_case(source: JsonObject, *, place: int = 1) -> CaseResult:
    """Read one case result from plain JSON values; `place` is the number of a case without one."""
    started = from_timestamp(text(source, "startTime")) or 0.0
    # The results of a placeholder are not the case's own.
    results = () if STANDS_FOR in source else tuple(map(_read_result, list_of_objects(source, "testResults")))
    generated = _read_generated_if_any(object_at(source, "generatedData"), results)
    status, error = text(source, "status").upper(), optional_text(source, "errorMessage")
    broken = status not in {"", "COMPLETED"} or generated is None
    if error is None and status not in JUDGED:
        error = f"the run ended while this case was {status}"
    return CaseResult(
        number=integer(source, "testNumber", place),
        iteration=integer(source, "iteration", 1),
        utterance=text(object_at(source, "inputs"), "utterance"),
        verdict=read_case_verdict(text(source, "verdict"), results, broken=broken),
        started=started,
        ended=from_timestamp(text(source, "endTime")) or started,
        results=results,
        generated=generated,
        error=error,
        label=text(source, "name"),
        earlier=tuple(
            EarlierTurn(text(each, "utterance"), read_generated(object_at(each, "generatedData")))
            for each in list_of_objects(source, "earlierTurns")
        ),
        traceback=text(source, "traceback"),
    )


def _read_generated_if_any(source: JsonObject, results: tuple[TestResult, ...]) -> GeneratedData | None:
    has_answer = any(isinstance(source.get(key), str) for key in ("outcome", "generatedResponse", "topic"))
    generated = read_generated(source)
    if generated.latency_ms is None:
        # Salesforce's orgs report the latency as a result of its own.
        measured = (each.score for each in results if each.name == _LATENCY)
        generated = replace(generated, latency_ms=next(measured, None))
    return generated if has_answer or generated.actions else None


def _write_result(result: TestResult, times: Mapping[str, str]) -> JsonObject:
    return {
        "name": result.name,
        "metricLabel": result.label or result.name,
        "expectedValue": result.expected,
        "actualValue": result.actual,
        "score": result.score,
        "result": _RESULTS.get(result.verdict),
        "metricExplainability": result.explanation,
        "status": "ERROR" if result.verdict is Verdict.ERROR else "COMPLETED",
        **times,
        "errorCode": None if result.error is None else 1,
        "errorMessage": _message_of(result),
        "partialScore": result.detail,
        "rater": result.rater,
        **({} if result.threshold is None else {"threshold": result.threshold}),
        **({"turn": result.turn} if result.turn else {}),
        **({"measured": True} if result.is_measured else {}),
    }


def _message_of(result: TestResult) -> str | None:
    """Return a message for every result that did not pass; the sf CLI shows others as unknown errors."""
    match result.verdict:
        case Verdict.FAILURE:
            return result.explanation or None
        case Verdict.UNDECIDED:
            return f"undecided: {result.explanation or 'no rater could judge it'}"
        case _:
            return result.error


def _read_result(source: JsonObject) -> TestResult:
    name, label, message = text(source, "name"), text(source, "metricLabel"), optional_text(source, "errorMessage")
    is_error, expected = text(source, "status").upper() == "ERROR", text(source, "expectedValue")
    was_skipped = is_error and _SKIPPED in (message or "") and not expected.strip()
    verdict = Verdict.ERROR if is_error else read_verdict(text(source, "result") or text(source, "metricScore"))
    is_latency = is_only_latency(name, source) and not is_error
    if was_skipped or is_latency:
        verdict = Verdict.UNDECIDED
    return TestResult(
        name=name,
        verdict=verdict,
        expected=expected,
        actual=text(source, "actualValue"),
        score=_score(source),
        explanation=text(source, "metricExplainability") or (message or "" if was_skipped else ""),
        label=label if "partialScore" in source and label != name else None,
        detail=number(source, "partialScore", None),
        rater=optional_text(source, "rater"),
        error=message if verdict is Verdict.ERROR else None,
        threshold=number(source, "threshold", None),
        turn=integer(source, "turn", 0),
        is_measured=is_latency or source.get("measured") is True,
    )


def is_only_latency(name: str, source: JsonObject) -> bool:
    """Return whether an org's result is a latency without an expected value, a measurement that always passes there."""
    is_own = "partialScore" in source
    return name == _LATENCY and not is_own and not text(source, "expectedValue").strip()


def _score(source: JsonObject) -> float | None:
    """Return a score, a number or its text, on any scale."""
    for key in ("score", "metricScore"):
        with suppress(ValueError):
            found = number(source, key, None)
            score = float(text(source, key)) if found is None else found
            if math.isfinite(score):
                return score
    return None


def read_verdict(word: str) -> Verdict:
    """Return the verdict of any known word, ignoring case; unknown words are undecided."""
    return _VERDICTS.get(word.upper(), Verdict.UNDECIDED)


def read_case_verdict(stated: str, results: tuple[TestResult, ...], *, broken: bool) -> Verdict:
    """Return the verdict of a case: the stated one, ERROR if it is broken, or else that of its results."""
    if stated in Verdict.__members__:
        return Verdict(stated)
    return Verdict.ERROR if broken else case_verdict(results)


class RunDefinition(NamedTuple):
    """The definition of a run as it was when the run was created, and as it is deployed now; None if it is gone."""

    original: bytes
    current: bytes | None
    is_abandoned: bool


def write_run_definition(definition: RunDefinition) -> JsonObject:
    """Write the definition of a run, an extension of evalmeta."""
    current = None if definition.current is None else b64encode(definition.current).decode()
    original = b64encode(definition.original).decode()
    return {"then": original, "now": current, "isAbandoned": definition.is_abandoned}


def read_run_definition(source: JsonObject) -> RunDefinition:
    """Read the definition of a run; raise MessageUnreadable if it is not valid base64."""
    current = optional_text(source, "now")
    try:
        original = b64decode(text(source, "then"), validate=True)
        return RunDefinition(
            original, None if current is None else b64decode(current, validate=True), source.get("isAbandoned") is True
        )
    except binascii.Error:
        raise MessageUnreadable("the definition of a run is not valid base64") from None


_DEFAULT: Final = RunOptions()
_SCORING: Final = Scoring()
_PAIR: Final = 2
_T = TypeVar("_T", bound=str)


def write_options(options: RunOptions) -> JsonObject:
    """Write run options."""
    scoring = options.scoring
    confirms: JsonObject = {"confirms": options.confirms} if options.confirms else {}
    origin: JsonObject = {"origin": {name: value for name, value in options.origin._asdict().items() if value}}
    return {
        "iterations": options.iterations,
        "minPassRate": options.min_pass_rate,
        "undecided": options.undecided,
        "minDecided": options.min_decided,
        "concurrency": options.concurrency,
        "caseTimeoutSeconds": options.case_timeout,
        "rateLimit": options.rate_limit,
        "retries": options.retries,
        "maxErrors": options.max_errors,
        "seed": options.seed,
        "cases": options.cases,
        "shard": options.shard,
        **confirms,
        **(origin if any(options.origin) else {}),
        "scoring": {
            "profile": scoring.profile,
            "actions": scoring.actions,
            "topics": scoring.topics,
            "matches": scoring.matches,
            "threshold": scoring.threshold,
            "rater": scoring.rater,
        },
    }


def read_options(source: JsonObject, *, default: RunOptions = _DEFAULT) -> RunOptions:
    """Read run options; missing keys have the values of `default`, and unknown values those of evalmeta."""
    missing = write_options(default)
    source = {**missing, **source, "scoring": {**object_at(missing, "scoring"), **object_at(source, "scoring")}}
    shard = _integers(source.get("shard"))
    return RunOptions(
        iterations=integer(source, "iterations", _DEFAULT.iterations),
        min_pass_rate=number(source, "minPassRate", _DEFAULT.min_pass_rate),
        undecided="fail" if source.get("undecided") == "fail" else "ignore",
        min_decided=number(source, "minDecided", None),
        concurrency=integer(source, "concurrency", _DEFAULT.concurrency),
        case_timeout=number(source, "caseTimeoutSeconds", _DEFAULT.case_timeout),
        rate_limit=number(source, "rateLimit", None),
        retries=integer(source, "retries", _DEFAULT.retries),
        max_errors=integer(source, "maxErrors", None),
        seed=integer(source, "seed", None),
        cases=_integers(source.get("cases")),
        shard=(shard[0], shard[1]) if shard is not None and len(shard) == _PAIR else None,
        confirms=text(source, "confirms") or "",
        scoring=_read_scoring(object_at(source, "scoring")),
        origin=_read_origin(object_at(source, "origin")),
    )


def _read_origin(source: JsonObject) -> Origin:
    suite, branch, revision = ((text(source, name) or "")[: limits.MAX_LABEL_CHARS] for name in Origin._fields[:3])
    return Origin(suite, branch, revision, tuple(texts(source, "tags")[: limits.MAX_RUN_TAGS]))


def _read_scoring(source: JsonObject) -> Scoring:
    profiles: tuple[ScoringProfile, ...] = get_args(ScoringProfile)
    actions: tuple[ActionMatch, ...] = get_args(ActionMatch)
    topics: tuple[TopicMatch, ...] = get_args(TopicMatch)
    matches: tuple[Matches, ...] = get_args(Matches)
    chosen = text(source, "actions")
    return Scoring(
        profile=_one_of(profiles, text(source, "profile"), _SCORING.profile),
        actions=_one_of(actions, chosen, "exact") if chosen in actions else None,
        topics=_one_of(topics, text(source, "topics"), _SCORING.topics),
        matches=_one_of(matches, text(source, "matches"), _SCORING.matches),
        threshold=number(source, "threshold", _SCORING.threshold),
        rater=text(source, "rater") or _SCORING.rater,
    )


def _one_of(known: tuple[_T, ...], word: str, default: _T) -> _T:
    return next((each for each in known if each == word), default)


def _integers(value: JsonValue) -> tuple[int, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    return tuple(each for each in value if isinstance(each, int) and not isinstance(each, bool))
