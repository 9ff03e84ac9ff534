"""Problems of files as text for people, JSON, SARIF, GitHub Actions or JUnit.

Errors show the line of their file with a caret below the place.
"""

from __future__ import annotations

import hashlib
import json
import re
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final
from unicodedata import east_asian_width
from urllib.parse import quote

from evalmeta.model.redaction import redacted
from evalmeta.report.text import clean, count, escape_unsafe, one_line, workflow_command
from evalmeta.version import __version__
from evalmeta.xmlio.writer import Node, node
from evalmeta.xmlio.writer import render as render_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.problem import Location, Problem


_PATH_CHARS: Final = 400
_TEXT_CHARS: Final = 1_000
_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
# Not evalmeta.toml, whose values may be secrets.
_EXCERPT_NAMES: Final = (
    *(".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".xml"),
    *("Definition", "-meta.xml"),
)
_MOST_LINE: Final = 100_000
_LINE_BYTES: Final = 1_000_000
_EXCERPT_BEFORE: Final = 60
_EXCERPT_CHARS: Final = 100
_QUOTED: Final = re.compile(r"'([^']+)'")
_WORD: Final = re.compile(r"</?[\w:.-]+>?|[\"']?[\w$.-]+[\"']?|\S|$")


def render(name: str, problems: Sequence[Problem], *, files: int) -> str:
    """Return problems in one of `FORMATS`; the text ends with a line break unless it is empty.

    `files` is the number of files checked; 0 if only the files with problems matter.
    """
    return _RENDERERS[name](problems, files)


def problem_json(problem: Problem) -> JsonObject:
    """Return a problem as JSON values; unknown and empty values are null."""
    location = problem.location
    return {
        "code": problem.code,
        "severity": problem.severity,
        "file": location.path,
        "line": location.line or None,
        "column": location.column or None,
        "message": problem.message,
        "hint": problem.hint or None,
        "component": problem.component or None,
    }


def render_human(
    problems: Sequence[Problem], *, files: int = 0, style: Callable[[str, str], str] = lambda text, _: text
) -> str:
    """Return problems by file, files in the order of their first problem, and a last line with the numbers.

    Errors show the line of their file with a caret below the place. `files` is as for `render`, and `style` returns a
    text with the style `file`, `error` or `warning`.
    """
    by_file: dict[str, list[Problem]] = {}
    for problem in problems:
        by_file.setdefault(problem.location.path, []).append(problem)
    groups = [
        "\n".join([style(one_line(path, chars=_PATH_CHARS), "file"), *_problem_lines(of_file, style)])
        for path, of_file in by_file.items()
    ]
    return "\n\n".join([*groups, _last_line(problems, bad_files=len(by_file), files=files)]) + "\n"


def warning_counts(problems: Sequence[Problem]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield for each code of warnings a text such as `2 findings of name-format`, and the files that have them."""
    by_code: dict[str, list[str]] = {}
    for problem in problems:
        if not problem.is_error:
            by_code.setdefault(problem.code, []).append(problem.location.path)
    for code, paths in by_code.items():
        yield f"{count(len(paths), 'finding')} of {code}", list(dict.fromkeys(paths))


def excerpts(problems: Sequence[Problem]) -> list[list[str]]:
    """Return the excerpt of each problem: the line, and a caret below its column or below the word that it quotes.

    A warning, a problem of a place that an earlier one has, or of a file that does not exist any more or is not
    that of a test, has none: an empty list.
    """
    places = dict.fromkeys(problem.location for problem in problems if problem.is_error and problem.location.line)
    lines = {path: _lines_of(path, places) for path in dict.fromkeys(place.path for place in places)}
    shown: set[tuple[str, int, int]] = set()
    return [
        _excerpt(problem, lines.get(problem.location.path, {}), shown) if problem.is_error else []
        for problem in problems
    ]


def excerpts_text(problems: Sequence[Problem], *, most: int) -> str:
    """Return the first excerpts, each with its place; empty if there are none."""
    shown = ((problem.location, lines) for problem, lines in zip(problems, excerpts(problems), strict=True) if lines)
    return "\n".join("\n".join([f"{place}", *(f"  {line}" for line in lines)]) for place, lines in islice(shown, most))


def _problem_lines(problems: Sequence[Problem], style: Callable[[str, str], str]) -> Iterator[str]:
    ordered = sorted(problems, key=lambda problem: problem.location)
    places = [str(problem.location).removeprefix(problem.location.path).removeprefix(":") for problem in ordered]
    width = max(map(len, places))
    severity_width = max(len(problem.severity) for problem in ordered)
    for place, problem, excerpt in zip(places, ordered, excerpts(ordered), strict=True):
        severity = style(f"{problem.severity:{severity_width}}", problem.severity)
        message = one_line(problem.message, chars=_TEXT_CHARS)
        yield f"  {place:{width}}{' ' * bool(width)}{severity} {message} [{problem.code}]"
        yield from (f"    {line}" for line in excerpt)
        if problem.hint:
            yield f"    {one_line(problem.hint, chars=_TEXT_CHARS)}"


def _last_line(problems: Sequence[Problem], *, bad_files: int, files: int) -> str:
    if not problems:
        return "no files were checked" if not files else f"{count(files, 'file')} {'is' if files == 1 else 'are'} valid"
    errors = sum(problem.is_error for problem in problems)
    numbers = [count(errors, "error")] * bool(errors)
    numbers += [count(len(problems) - errors, "warning")] * (errors < len(problems))
    where = f"{bad_files:,} of {count(max(files, bad_files), 'file')}" if files else count(bad_files, "file")
    return f"{', '.join(numbers)} in {where}"


def _lines_of(path: str, places: Iterable[Location]) -> dict[int, str]:
    """Return those lines of a file that places are on."""
    numbers = {place.line for place in places if place.path == path and place.line <= _MOST_LINE}
    if not (path.endswith(_EXCERPT_NAMES) and numbers and Path(path).is_file()):
        return {}
    try:
        with Path(path).open("rb") as file:
            lines = enumerate(iter(lambda: file.readline(_LINE_BYTES), b""), 1)
            found = {number: line for number, line in islice(lines, max(numbers)) if number in numbers}
    except OSError:
        return {}
    texts = {number: line.decode("utf-8", "replace").rstrip("\r\n") for number, line in found.items()}
    return {number: text.removeprefix("\ufeff").replace("\t", " ") for number, text in texts.items()}


def _excerpt(problem: Problem, lines: Mapping[int, str], shown: set[tuple[str, int, int]]) -> list[str]:
    place, line = problem.location, lines.get(problem.location.line)
    if line is None:
        return []
    # Tables and JSON Lines have no columns: the place is the word that the message quotes.
    quoted = _QUOTED.search(problem.message)
    column = place.column or (line.find(quoted[1]) + 1 if quoted else 0)
    if (key := (place.path, place.line, column)) in shown:
        return []
    shown.add(key)
    return _drawn(line, place.line, column)


def _drawn(line: str, number: int, column: int) -> list[str]:
    at = max(column - 1, 0)
    begin = max(0, at - _EXCERPT_BEFORE) if len(line) > _EXCERPT_CHARS else 0
    part, before = line[begin : begin + _EXCERPT_CHARS], clean(line[begin:at])
    margin = f"{number} | "
    text = f"{margin}{'…' if begin else ''}{redacted(clean(part))}{'…' if begin + _EXCERPT_CHARS < len(line) else ''}"
    if not (column and line.strip()):
        return [text.rstrip()]
    word = _WORD.match(line, at)
    carets = "^" * max(1, _width(clean(word[0])) if word else 1)
    return [text, f"{' ' * (len(margin) - 2)}| {' ' * (_width(before) + bool(begin))}{carets}"]


def _width(text: str) -> int:
    """Return the columns of a text on a terminal."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _json(problems: Sequence[Problem], files: int) -> str:
    body = {"files": files, "problems": [problem_json(problem) for problem in problems]}
    return escape_unsafe(json.dumps(body, indent=2, ensure_ascii=False)) + "\n"


def _sarif(problems: Sequence[Problem], _files: int) -> str:
    """Return SARIF 2.1.0: one run with the rules of its problems; paths are relative to the current folder."""
    rules = {problem.code: _rule(problem.code) for problem in problems}
    driver = {"name": "evalmeta", "semanticVersion": __version__, "rules": list(rules.values())}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(problem, list(rules).index(problem.code)) for problem in problems],
    }
    log = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return escape_unsafe(json.dumps(log, indent=2, ensure_ascii=False)) + "\n"


def _rule(code: str) -> JsonObject:
    text = f"`evalmeta rule {code}` explains this rule."
    return {"id": code, "shortDescription": {"text": code.replace("-", " ")}, "help": {"text": text, "markdown": text}}


def _result(problem: Problem, rule_index: int) -> JsonObject:
    location, path = problem.location, PurePath(problem.location.path)
    uri = ("file://" if path.is_absolute() else "") + quote(path.as_posix().encode("utf-8", "surrogatepass"))
    place: dict[str, JsonObject] = {"artifactLocation": {"uri": uri}}
    if location.line:
        column = {"startColumn": location.column} if location.column else {}
        place["region"] = {"startLine": location.line, **column}
    # The hash of rule, file and message stays the same when lines move.
    text = f"{problem.code}\0{location.path}\0{problem.message}"
    fingerprint = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return {
        "ruleId": problem.code,
        "ruleIndex": rule_index,
        "level": problem.severity.value,
        "message": {"text": f"{problem.message}. {problem.hint}".strip()},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"evalmeta/v1": fingerprint},
    }


def _github(problems: Sequence[Problem], _files: int) -> str:
    return "".join(map(_github_command, problems))


def _github_command(problem: Problem) -> str:
    location, text = problem.location, f"{problem.message}. {problem.hint}".strip()
    numbers = [(name, f"{number}") for name, number in (("line", location.line), ("col", location.column)) if number]
    return workflow_command(problem.severity, text, [("file", location.path), *numbers, ("title", problem.code)])


def _junit(problems: Sequence[Problem], files: int) -> str:
    """Return one suite: errors are failures, warnings are output, and without problems one test case passes."""
    cases = [_case(problem) for problem in problems] or [node("testcase", name=f"{files} files", classname="validate")]
    failures = str(sum(problem.is_error for problem in problems))
    counts = {"tests": str(len(cases)), "failures": failures, "errors": "0"}
    suite = node("testsuite", cases, name="evalmeta validate", **counts, skipped="0", time="0.000")
    return render_xml(node("testsuites", [suite], name="evalmeta validate", **counts), indent=2).decode()


def _case(problem: Problem) -> Node:
    location = problem.location
    text, path = f"{problem.message}\n{problem.hint}".strip(), clean(location.path)
    finding = (
        node("failure", clean(f"{location}: {text}"), message=clean(problem.message), type=problem.code)
        if problem.is_error
        else node("system-out", clean(f"{location}: warning: {text}"))
    )
    name = f"{problem.code} at {location.line}:{location.column}"
    return node("testcase", [finding], name=name, classname=path, file=path, line=str(location.line))


_RENDERERS: Final[Mapping[str, Callable[[Sequence[Problem], int], str]]] = {
    "human": lambda problems, files: render_human(problems, files=files),
    "json": _json,
    "sarif": _sarif,
    "github": _github,
    "junit": _junit,
}
FORMATS: Final = tuple(_RENDERERS)
