"""What one test of an evaluation brings: its verdict, reason and inputs, and the number of its case."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Final, TypedDict, cast

import pytest
from _pytest._io.saferepr import saferepr
from _pytest.compat import NOTSET
from _pytest.skipping import evaluate_skip_marks

from evalmeta.engine.redaction import redacted_json
from evalmeta.model.fingerprints import fingerprint
from evalmeta.model.redaction import hide_secrets
from evalmeta.pytest_plugin.entries import why_alone
from evalmeta.report.text import escape_unsafe, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_NUMBER: Final = pytest.StashKey[tuple[int, int]]()
_REASON_CHARS: Final = 300
NO_PARAMETERS: Final = "no parameter sets"
_NOT_SUPPORTED: Final = "async def functions are not natively supported"


class CaseNote(TypedDict):
    """The result of one test of an evaluation, as plain values that workers can send."""

    evaluation: str  # the node id of the test function, without parameters
    nodeid: str
    case: str  # the id of the parameter set without secrets, empty without one
    place: list[int]  # the indices of the parameters, which sort the parameter sets
    inputs: str | None  # the parameters as a JSON object, without secrets; None if there are none
    iteration: int  # from 1
    iterations: int
    min_pass_rate: float
    verdict: str  # PASS, FAILURE or ERROR
    reason: str  # why the test did not pass, on one line, without secrets
    file: str  # the file of the test function
    line: int  # from 1
    alone: str  # why a coroutine function does not run beside others
    number: int  # of the case among those that were collected, from 1
    cases: int  # how many were collected, before options such as -k chose some
    started: float  # in seconds since the epoch
    ended: float
    checks: str  # a fingerprint of the source of the test function


class UncountedTest(TypedDict):
    """A test of an evaluation that does not count, as plain values that workers can send."""

    evaluation: str
    nodeid: str
    why: str
    is_marked: bool  # whether a mark of the test says so, and not what happened when it ran
    file: str
    line: int  # from 1


def uncounted_of(item: pytest.Item, report: pytest.TestReport) -> UncountedTest:
    """Return why a test without a verdict does not count."""
    file, line, _ = item.location
    callspec = getattr(item, "callspec", None)
    is_xfail = hasattr(report, "wasxfail")
    if callspec and any(parameter is NOTSET for parameter in callspec.params.values()):
        why, is_marked = NO_PARAMETERS, False
    elif is_xfail:
        why, is_marked = "expected to fail", item.get_closest_marker("xfail") is not None
    else:
        why, is_marked = "skipped", evaluate_skip_marks(item) is not None
    return {
        "evaluation": _evaluation(item),
        "nodeid": item.nodeid,
        "why": why,
        "is_marked": is_marked,
        "file": file,
        "line": (line or 0) + 1,
    }


def note_of(
    item: pytest.Item, marker: pytest.Mark, report: pytest.TestReport, call: pytest.CallInfo[None], *, own_fixture: str
) -> CaseNote | None:
    """Return the result of a phase of a test, and add it to the report's properties; None if it has none."""
    verdict = _verdict(report, call, errors_fail=marker.kwargs["errors"] == "fail")
    if verdict is None:
        return None
    note = _note(item, marker, verdict, _reason(report, call), own_fixture)
    note |= {"started": report.start, "ended": report.stop}
    # Files such as JUnit XML contain the properties of the last report of an item.
    added: dict[str, object] = {"evaluation": note["evaluation"], "verdict": note["verdict"]}
    if note["inputs"] is not None:
        added["inputs"] = note["inputs"]
    kept = [entry for entry in item.user_properties if entry[0] not in added]
    item.user_properties[:] = [*kept, *added.items()]
    report.user_properties = list(item.user_properties)
    return note


def _verdict(report: pytest.TestReport, call: pytest.CallInfo[None], *, errors_fail: bool) -> str | None:
    """Return the verdict of a phase; None if it was skipped, failed as expected, or passed outside the call.

    With `errors_fail`, exceptions of the test itself are failures, but not those that end a session.
    """
    if report.passed:
        return "PASS" if report.when == "call" else None
    if report.skipped or call.excinfo is None:
        # A strict xfail test that passed has no exception.
        return "FAILURE" if report.failed else None
    error = call.excinfo.value
    failures = (AssertionError, pytest.fail.Exception, *((Exception,) if errors_fail else ()))
    is_failure = isinstance(error, failures) and _NOT_SUPPORTED not in str(error)
    return "FAILURE" if report.when == "call" and is_failure else "ERROR"


def _reason(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
    if report.passed:
        return ""
    if call.excinfo is None:
        return one_line(hide_secrets(str(report.longrepr)))
    # The first line of an assertion error is the assertion; the others are pytest's explanation.
    first, *_ = call.excinfo.exconly(tryshort=True).strip().splitlines() or [""]
    # Hidden before the line is cut, because a part of a secret does not look like one.
    return one_line(hide_secrets(first), chars=_REASON_CHARS)


def _note(item: pytest.Item, marker: pytest.Mark, verdict: str, reason: str, own_fixture: str) -> CaseNote:
    file, line, _ = item.location
    callspec = getattr(item, "callspec", None)
    parameters: dict[str, object] = dict(callspec.params) if callspec else {}
    iteration = cast("int", parameters.pop(own_fixture, 1))
    number, cases = item.stash.get(_NUMBER, (1, 1))
    return {
        "evaluation": _evaluation(item),
        "nodeid": item.nodeid,
        "case": hide_secrets(_case(item, iteration)),
        "place": [callspec.indices[name] for name in parameters] if callspec else [],
        "inputs": inputs_text(parameters) if parameters else None,
        "iteration": iteration,
        "iterations": marker.kwargs["iterations"],
        "min_pass_rate": marker.kwargs["min_pass_rate"],
        "verdict": verdict,
        "reason": reason,
        "file": file,
        "line": (line or 0) + 1,
        "alone": why_alone(item, own_fixture=own_fixture),
        "number": number,
        "cases": cases,
        "started": 0.0,
        "ended": 0.0,
        "checks": _source_of(item),
    }


def number_cases(items: Iterable[pytest.Item], *, own_fixture: str) -> None:
    """Number the cases of evaluations in the order of their collection, so that a selection does not change them."""
    by_evaluation: dict[str, dict[str, list[pytest.Item]]] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        case = _case(item, callspec.params.get(own_fixture, 1) if callspec else 1)
        by_evaluation.setdefault(_evaluation(item), {}).setdefault(case, []).append(item)
    for cases in by_evaluation.values():
        for number, same in enumerate(cases.values(), 1):
            for item in same:
                item.stash[_NUMBER] = (number, len(cases))


def _evaluation(item: pytest.Item) -> str:
    function = getattr(item, "originalname", item.name)
    return f"{item.parent.nodeid}::{function}" if item.parent else item.nodeid


def _case(item: pytest.Item, iteration: int) -> str:
    callspec = getattr(item, "callspec", None)
    case: str = f"-{callspec.id}" if callspec else ""
    return case.removesuffix(f"-iteration{iteration}").removeprefix("-")


def _source_of(item: pytest.Item) -> str:
    try:
        return fingerprint(inspect.getsource(getattr(item, "function", None)))  # type: ignore[arg-type] # else TypeError
    except (OSError, TypeError):
        return ""


def inputs_text(parameters: Mapping[str, object]) -> str:
    """Return parameters as a JSON object on one line, without secrets; values that are not JSON become their `repr`."""
    items = (f"{json.dumps(name)}: {_json_text(parameter)}" for name, parameter in parameters.items())
    text = "{" + ", ".join(items) + "}"
    # Some secrets are only known by the name before them.
    hidden = hide_secrets(text)
    return escape_unsafe(hidden if _is_json(hidden) else text)


def _json_text(value: object) -> str:
    try:
        plain = json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain))
        return json.dumps(redacted_json(plain, hide_secrets), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(hide_secrets(saferepr(value)), ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _plain(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else saferepr(value)
