"""The Connect API's results of agent tests, as values and as JSON.

The shape is the Testing API's ("Get Test Results"). Where it has no place for something
there are keys of our own: `iteration`, `verdict`, `partialScore`, `rater` and
`latencyMilliseconds` inside, and `evalmeta` beside `status`. Over the wire, text is
HTML-escaped as orgs send it; in files it is plain, and `evalmeta` says so.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from evalmeta.errors import MessageUnreadable
from evalmeta.model.run import Run, RunStatus
from evalmeta.wire.jsonfields import integer, list_of_objects, object_at, optional_text, text
from evalmeta.wire.results import JUDGED, STANDS_FOR, read_case, write_case
from evalmeta.wire.runoptions import read_options, write_options
from evalmeta.wire.timestamps import from_timestamp, to_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.model.jsonvalue import JsonObject, JsonValue
    from evalmeta.model.run import CaseResult

    Translation = Callable[[str], str]

__all__ = ["escape_html", "read_run", "write_run"]

_ESCAPED_TEXTS: Final = ("actualValue", "expectedValue", "metricExplainability")


def write_run(run: Run, *, escape: bool, stand_ins: Sequence[CaseResult] = ()) -> JsonObject:
    """Writes a run as the results object.

    Args:
        run: the run with its cases.
        escape: for the wire; without for files. Over the wire a run that broke is
            COMPLETED too, or Salesforce's clients would ask about it without end;
            `evalmeta` says what it really is.
        stand_ins: what clients that show every case and every expectation are told
            instead of a broken case, or of one without a result; `read_run` undoes it.
    """
    instead = {(each.iteration, each.number): {**write_case(each), STANDS_FOR: "nothing"} for each in stand_ins}
    cases = []
    for each in run.cases:
        stand_in = instead.pop((each.iteration, each.number), None)
        cases.append({**stand_in, STANDS_FOR: "a case"} if stand_in else write_case(each))
    cases += instead.values()
    return {
        "status": RunStatus.COMPLETED.value if escape and run.status is RunStatus.ERROR else run.status.value,
        "startTime": to_timestamp(run.started),
        "endTime": None if run.ended is None else to_timestamp(run.ended),
        "errorMessage": run.error,
        "subjectName": run.subject_name,
        "testCases": [_escape_case(each) for each in cases] if escape else cases,
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


def read_run(source: JsonObject, *, run_id: str = "", definition: str = "") -> Run:
    """Reads a results object in any variant seen in the wild.

    Bare or inside `{status, result, warnings}`; HTML-escaped or plain; lists as lists or
    as text; cases with or without data. Cases that a run still works on are left out.

    Raises:
        MessageUnreadable: it is no results object, or nested too deeply to be written again.
    """
    source = object_at(source, "result") or source
    if not isinstance(source.get("testCases"), list):
        raise MessageUnreadable("it has no list of testCases, so it is no results object")
    own, listed = object_at(source, "evalmeta"), list_of_objects(source, "testCases")
    status = _run_status(text(own, "status") or text(source, "status"))
    cases = tuple(
        read_case(_plain_case(each, own), place=place)
        for place, each in enumerate(listed, 1)
        if each.get(STANDS_FOR) != "nothing" and not _is_pending(each, status)
    )
    return Run(
        id=text(own, "runId") or run_id,
        definition=text(own, "definition") or definition,
        subject_name=text(source, "subjectName"),
        subject_version=optional_text(own, "subjectVersion"),
        status=status,
        started=from_timestamp(text(source, "startTime")) or 0.0,
        ended=from_timestamp(text(source, "endTime")),
        error=optional_text(source, "errorMessage"),
        total=integer(own, "total", len(listed)),
        answers_of=optional_text(own, "answersOf"),
        options=read_options(object_at(own, "options")),
        cases=cases,
    )


def _is_pending(case: JsonObject, run: RunStatus) -> bool:
    """Tells whether a case has no result yet, or will never have one because its run was canceled."""
    return text(case, "status").upper() not in JUDGED and run not in {RunStatus.COMPLETED, RunStatus.ERROR}


def _run_status(word: str) -> RunStatus:
    """Reads a status; one that is not known means that the run is still going on."""
    try:
        return RunStatus(word.upper())
    except ValueError:
        return RunStatus.IN_PROGRESS


def escape_html(plain: str) -> str:
    """Escapes text as orgs send it: Salesforce's agents library does not know `&#x27;`."""
    return html.escape(plain, quote=True).replace("&#x27;", "&#39;")


def _escape_case(case: JsonObject) -> JsonObject:
    return _translate_case(case, escape_html)


def _plain_case(case: JsonObject, own: JsonObject) -> JsonObject:
    """Gives a case with plain text; our own results say whether they are escaped, others may be anywhere."""
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
