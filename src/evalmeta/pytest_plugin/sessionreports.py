"""A session's evaluations as a file: what they asked for, came to and were given.

The file is a baseline (`store/baselines.py`) with more in it, so that it can be committed and
compared with later. A session never writes over the file of another.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evalmeta.errors import ProjectError
from evalmeta.pytest_plugin.inputs import NO_INPUTS
from evalmeta.report.plain import escape_unsafe

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from evalmeta.model.jsonvalue import JsonObject, JsonValue
    from evalmeta.pytest_plugin.tallies import CaseNote, EvaluationTally

__all__ = ["write_session_report"]


def write_session_report(folder: Path, tallies: Iterable[EvaluationTally], *, is_complete: bool) -> Path:
    """Writes a report `evalmeta-20260212T054708.966000Z.json`, named by the time in UTC, and gives its path.

    Raises:
        ProjectError: it cannot be written.
    """
    now = datetime.now(UTC)
    document: JsonObject = {
        "evalmeta": "baseline",
        "version": 1,
        "written": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
        "complete": is_complete,
        "tests": {each.name: _evaluation(each, is_complete=is_complete) for each in tallies},
    }
    text = escape_unsafe(json.dumps(document, ensure_ascii=False, indent=2)) + "\n"
    path = folder / f"evalmeta-{now:%Y%m%dT%H%M%S.%fZ}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise ProjectError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def _evaluation(tally: EvaluationTally, *, is_complete: bool) -> JsonObject:
    summary = tally.summary
    verdict = ("PASSED" if summary.succeeded else "FAILED") if is_complete else "STOPPED"
    has_inputs = tally.first["inputs"] is not None
    cases = zip(tally.case_counts(), tally.cases().values(), strict=True)
    return {
        "verdict": verdict,
        "pass_rate": summary.pass_rate,
        "min_pass_rate": summary.min_pass_rate,
        "iterations": tally.first["iterations"],
        "passed": summary.passed,
        "failed": summary.failed,
        "errors": summary.errors,
        "outcomes": [
            {
                "iteration": iteration,
                "pass_rate": counts.pass_rate,
                "passed": counts.passed,
                "failed": counts.failed,
                "errors": counts.errors,
            }
            for iteration, counts in tally.by_iteration().items()
        ],
        **({} if has_inputs else {"inputs": NO_INPUTS}),
        "cases": {
            str(counts.number): {
                "utterance": counts.utterance,
                "passed": counts.passed,
                "failed": counts.failed,
                "errors": counts.errors,
                "outcomes": [_outcome(each) for each in notes],
                **({"inputs": _inputs(notes[0])} if has_inputs else {}),
            }
            for counts, notes in cases
        },
    }


def _outcome(note: CaseNote) -> JsonObject:
    found: dict[str, JsonValue] = {"iteration": note["iteration"], "verdict": note["verdict"]}
    return {**found, "reason": note["reason"]} if note["reason"] else found


def _inputs(note: CaseNote) -> JsonValue:
    found: JsonValue = json.loads(note["inputs"] or "null")
    return found
