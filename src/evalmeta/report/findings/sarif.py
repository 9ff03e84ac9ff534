"""Problems as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from evalmeta import __version__
from evalmeta.report.plain import escape_unsafe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.model.problem import Problem

__all__ = ["render"]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def render(problems: Sequence[Problem], *, files: int) -> str:  # noqa: ARG001 - the formats share one signature
    """Writes one run with the rules that fired; paths are relative to where the check ran."""
    rules = {problem.code: _rule(problem.code) for problem in problems}
    driver = {"name": "evalmeta", "semanticVersion": __version__, "rules": list(rules.values())}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(problem, list(rules).index(problem.code)) for problem in problems],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return escape_unsafe(json.dumps(log, indent=2, ensure_ascii=False)) + "\n"


def _rule(code: str) -> JsonObject:
    text = f"`evalmeta rule {code}` explains this rule."
    return {"id": code, "shortDescription": {"text": code.replace("-", " ")}, "help": {"text": text, "markdown": text}}


def _result(problem: Problem, rule_index: int) -> JsonObject:
    return {
        "ruleId": problem.code,
        "ruleIndex": rule_index,
        "level": problem.severity.value,
        "message": {"text": f"{problem.message}. {problem.hint}".strip()},
        "locations": [{"physicalLocation": _place(problem)}],
        "partialFingerprints": {"evalmeta/v1": _fingerprint(problem)},
    }


def _place(problem: Problem) -> JsonObject:
    location = problem.location
    place: dict[str, JsonObject] = {"artifactLocation": {"uri": _uri(location.path)}}
    if location.line:
        column = {"startColumn": location.column} if location.column else {}
        place["region"] = {"startLine": location.line, **column}
    return place


def _uri(path: str) -> str:
    pure = PurePath(path)
    return ("file://" if pure.is_absolute() else "") + quote(pure.as_posix().encode("utf-8", "surrogatepass"))


def _fingerprint(problem: Problem) -> str:
    """Stays the same when lines move: it is made of rule, file and message."""
    text = f"{problem.code}\0{problem.location.path}\0{problem.message}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
