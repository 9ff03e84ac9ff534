"""Problems as text, in one of several formats; each format is a module with one function, `render`.

Problems for people: each with its place and the way out.

Problems as JSON.

Problems as SARIF 2.1.0, which code scanning services read.

Problems as workflow commands of GitHub Actions, which shows them beside the changed lines.

Problems as JUnit XML: a test case for each problem, or one that passed when there are none.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote

from evalmeta import __version__
from evalmeta.report.github import workflow_command
from evalmeta.report.text import count, escape_unsafe, one_line
from evalmeta.xmlio.writer import node
from evalmeta.xmlio.writer import render as render_xml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.problem import Problem
    from evalmeta.xmlio.writer import Node


def render(name: str, problems: Sequence[Problem], *, files: int) -> str:
    """Writes problems in one of `FORMATS`; the text ends with a line break unless it is empty.

    Args:
        name: the format's name.
        problems: the problems of all files.
        files: how many files were checked.
    """
    return _RENDERERS[name](problems, files=files)


_PLACE_CHARS: Final = 400
_TEXT_CHARS: Final = 1_000


def _human(problems: Sequence[Problem], *, files: int) -> str:
    """Writes problems grouped by file, in order of place, and a last line that counts them.

    Args:
        problems: the problems of all files; files come in the order of their first problem.
        files: how many files were checked; 0 when others than those with problems do not matter.
    """
    by_file: dict[str, list[Problem]] = {}
    for problem in problems:
        by_file.setdefault(problem.location.path, []).append(problem)
    groups = ["\n".join(_group(each)) for each in by_file.values()]
    return "\n\n".join([*groups, _last_line(problems, bad_files=len(by_file), files=files)]) + "\n"


def _group(problems: Sequence[Problem]) -> Iterator[str]:
    ordered = sorted(problems, key=lambda problem: problem.location)
    places = [one_line(f"{problem.location}", chars=_PLACE_CHARS) for problem in ordered]
    width = max(map(len, places))
    for shown, problem in zip(places, ordered, strict=True):
        message = one_line(problem.message, chars=_TEXT_CHARS)
        yield f"{shown:{width}}  {problem.severity:7}  {message}  [{problem.code}]"
        if problem.hint:
            yield f"{'':{width}}  → {one_line(problem.hint, chars=_TEXT_CHARS)}"


def _last_line(problems: Sequence[Problem], *, bad_files: int, files: int) -> str:
    if not problems:
        return "no files were checked" if not files else f"{count(files, 'file')} {'is' if files == 1 else 'are'} valid"
    errors = sum(problem.is_error for problem in problems)
    numbers = [count(errors, "error")] * bool(errors)
    numbers += [count(len(problems) - errors, "warning")] * (errors < len(problems))
    place = f"{bad_files:,} of {count(max(files, bad_files), 'file')}" if files else count(bad_files, "file")
    return f"{', '.join(numbers)} in {place}"


def _json(problems: Sequence[Problem], *, files: int) -> str:
    """Writes `{files, problems}`, every problem with all its keys."""
    body = {"files": files, "problems": [problem_json(each) for each in problems]}
    return escape_unsafe(json.dumps(body, indent=2, ensure_ascii=False)) + "\n"


def problem_json(problem: Problem) -> JsonObject:
    """Gives a problem as JSON values; what is unknown or empty is null."""
    location = problem.location
    return {
        "code": problem.code,
        "severity": problem.severity.value,
        "file": location.path,
        "line": location.line or None,
        "column": location.column or None,
        "message": problem.message,
        "hint": problem.hint or None,
        "component": problem.component or None,
    }


_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def _sarif(problems: Sequence[Problem], *, files: int) -> str:  # noqa: ARG001 - the formats share one signature
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


def _github(problems: Sequence[Problem], *, files: int) -> str:  # noqa: ARG001 - the formats share one signature
    """Writes one command for each problem; no text of a file can begin a command of its own."""
    return "".join(map(_command, problems))


def _command(problem: Problem) -> str:
    text = f"{problem.message}. {problem.hint}".strip()
    return workflow_command(problem.severity, text, _properties(problem))


def _properties(problem: Problem) -> Iterator[tuple[str, str]]:
    location = problem.location
    yield "file", location.path
    if location.line:
        yield "line", f"{location.line}"
    if location.column:
        yield "col", f"{location.column}"
    yield "title", problem.code


def _junit(problems: Sequence[Problem], *, files: int) -> str:
    """Writes one suite; errors are failures, warnings are test cases with their text as output."""
    cases = [_case(problem) for problem in problems] or [node("testcase", name=f"{files} files", classname="validate")]
    failures = str(sum(problem.is_error for problem in problems))
    counts = {"tests": str(len(cases)), "failures": failures, "errors": "0"}
    suite = node("testsuite", cases, name="evalmeta validate", **counts, skipped="0", time="0.000")
    return render_xml(node("testsuites", [suite], name="evalmeta validate", **counts), indent=2).decode()


def _case(problem: Problem) -> Node:
    location = problem.location
    text = f"{problem.message}\n{problem.hint}".strip()
    found = (
        node("failure", f"{location}: {text}", message=problem.message, type=problem.code)
        if problem.is_error
        else node("system-out", f"{location}: warning: {text}")
    )
    name = f"{problem.code} at {location.line}:{location.column}"
    return node("testcase", [found], name=name, classname=location.path, file=location.path, line=str(location.line))


class _Renderer(Protocol):
    def __call__(self, problems: Sequence[Problem], *, files: int) -> str: ...


_RENDERERS: Final[Mapping[str, _Renderer]] = {
    "human": _human,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
    "junit": _junit,
}
FORMATS: Final = tuple(_RENDERERS)
