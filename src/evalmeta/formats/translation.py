"""Test cases of another tool as mappings with the keys of test specs, and what the specs cannot hold of them.

A check that evalmeta cannot make must not vanish. In a run it is an undecided result of its own. In a test spec its
test case is marked `review: true`, so that it is undecided until a person has looked at it, and its metadata name it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.errors import FormatError
from evalmeta.formats.diagnostics import Diagnostics, Loss, Written
from evalmeta.formats.document import LINES_NAMES, TABLE_NAMES, Document, read_bytes
from evalmeta.formats.sources import read_csv, read_json
from evalmeta.formats.spec_cases import case_of
from evalmeta.formats.testspec import read_spec
from evalmeta.formats.yaml_source import write_yaml
from evalmeta.model.checks import UNJUDGED
from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import Case, Evaluation
from evalmeta.model.json_value import json_text
from evalmeta.model.problem import Location, Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.formats.yaml_source import Yaml
    from evalmeta.model.json_value import JsonObject, JsonValue


_NOT_JUDGED: Final = "not_judged"
"""The name in the metadata of a test case under which the checks stand that evalmeta cannot make."""
_ROLES: Final = {
    **dict.fromkeys(("assistant", "agent", "ai", "model"), "agent"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
}


@dataclass(frozen=True, slots=True)
class TranslatedCase:
    """One test case.

    Attributes:
        values: its keys as in a test spec.
        line: its line in the file, from 1; 0 if it is not known.
        unjudged: the checks that evalmeta cannot make.
        left_out: what else is not kept, and changes no verdict.
    """

    values: JsonObject
    line: int = 0
    unjudged: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def spec(self) -> dict[str, JsonValue]:
        """Return its keys in a test spec, with the mark that a person must review what is not judged."""
        if not self.unjudged:
            return dict(self.values)
        metadata = self.values.get("metadata")
        known = metadata if isinstance(metadata, dict) else {}
        return {**self.values, "metadata": {**known, _NOT_JUDGED: "; ".join(self.unjudged)}, "review": True}


@dataclass(frozen=True, slots=True)
class Translation:
    """A file of another tool; `head` has the keys of the test spec beside its test cases."""

    label: str
    cases: Sequence[TranslatedCase]
    head: JsonObject = field(default_factory=dict)
    iterations: int | None = None
    left_out: tuple[str, ...] = ()

    def document(self, name: str) -> Document:
        """Return it as the engine runs it; raise FormatError with all problems."""
        cases = tuple(self._cases())
        lines = {number: case.line for number, case in enumerate(self.cases, 1) if case.line}
        subject = self.head.get("subject")
        evaluation = Evaluation(name, subject if isinstance(subject, str) else "", cases)
        return Document(evaluation, self.iterations, notes=tuple(self._notes()), lines=lines)

    def spec(self, *, subject: str | None = None) -> Written:
        """Return it as a test spec, with what it cannot hold."""
        self.document("")
        head: dict[str, Yaml] = {"subject": subject} if subject else {}
        iterations: dict[str, Yaml] = {} if self.iterations is None else {"iterations": self.iterations}
        cases: list[Yaml] = [case.spec for case in self.cases]
        content = write_yaml({**head, **self.head, **iterations, "testCases": cases})
        read_spec(content, label=f"the test spec of {self.label}")
        losses = [Loss("the file", what) for what in self.left_out]
        for number, case in enumerate(self.cases, 1):
            what = (*case.left_out, *(f"{check}; the case is marked review: true" for check in case.unjudged))
            losses += [Loss(f"test case {number}", text) for text in what]
        return Written(content, tuple(losses))

    def _cases(self) -> Iterator[Case]:
        diagnostics = Diagnostics(self.label)
        for number, case in enumerate(self.cases, 1):
            try:
                yield _with_unjudged(case_of(case.values, number), case.unjudged)
            except FormatError as error:
                message = f"test case {number}: {'; '.join(problem.message for problem in error.problems) or error}"
                diagnostics.error("translation", message, line=case.line)
        diagnostics.check()

    def _notes(self) -> Iterator[Problem]:
        for what in self.left_out:
            yield Problem("translation", Severity.WARNING, Location(self.label, 0, 0), f"not kept: {what}")
        for number, case in enumerate(self.cases, 1):
            for check in case.unjudged[: limits.MAX_PROBLEMS]:
                hint = "Convert the file to a test spec, and write the check with the keys of evalmeta there."
                message = f"test case {number}: evalmeta cannot judge {check}, so this check is undecided"
                yield Problem("translation", Severity.WARNING, Location(self.label, case.line, 0), message, hint)


def _with_unjudged(case: Case, checks: Sequence[str]) -> Case:
    """Return a case whose last turn has a result for each check that evalmeta cannot make, which is undecided."""
    if not checks:
        return case
    *turns, last = case.turns
    unjudged = (
        Expectation(UNJUDGED, label=check, terms={"reason": f"evalmeta cannot judge {check}"}) for check in checks
    )
    return replace(case, turns=(*turns, replace(last, expectations=(*last.expectations, *unjudged))))


class Row(NamedTuple):
    """An object of a file with its line, from 1."""

    line: int
    values: JsonObject


def rows_of(path: Path, *, label: str, key: str = "") -> list[Row]:
    """Return the objects of a JSON list, of the list under `key` of a JSON object, of JSON Lines, or of a table.

    Cells of a table are texts, and empty ones are left out. Raise FormatError for anything else.
    """
    suffix = path.suffix.lower()
    data = read_bytes(path)
    if suffix in TABLE_NAMES:
        return _rows_of_table(data, label)
    if suffix in LINES_NAMES:
        lines = ((number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip())
        return [_row(line, read_json(text, label=label, first_line=line).value, label) for line, text in lines]
    file = read_json(data, label=label)
    steps = (key,) if isinstance(file.value, dict) else ()
    items = file.at(steps)
    if not isinstance(items, list):
        way_out = f"Write them as a list under {key!r}, or as a list alone." if key else "Write them as a list."
        raise FormatError(f"{label} has no list of test cases", actions=[way_out])
    return [_row(line, item, label) for line, item in zip(file.lines_of(steps), items, strict=True)]


def _row(line: int, value: JsonValue, label: str) -> Row:
    if not isinstance(value, dict):
        raise FormatError(f"{label}:{line}: a test case is not an object", actions=["Write an object in each place."])
    return Row(line, value)


def _rows_of_table(data: bytes, label: str) -> list[Row]:
    diagnostics = Diagnostics(label)
    rows = [*read_csv(data, diagnostics, max_bytes=limits.MAX_JSON_BYTES)]
    diagnostics.check()
    titles = [title.strip() for title in rows[0].cells] if rows else []
    return [
        Row(row.line, {title: cell for title, cell in zip(titles, row.cells, strict=False) if title and cell})
        for row in rows[1:]
    ]


def message_text(content: JsonValue) -> str | None:
    """Return the text of a message: a text, or a list of parts with texts; None if it has other parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part.get("text") if isinstance(part, dict) else part for part in content]
    return "\n".join(text for text in texts if isinstance(text, str)) if all(map(_is_text, texts)) else None


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str)


def ask_messages(messages: Sequence[JsonValue]) -> JsonObject | None:
    """Return the keys of a test case for a conversation that ends with a user's message; None if it is not one."""
    read: list[JsonObject] = []
    for message in messages:
        if not isinstance(message, dict):
            return None
        role = _ROLES.get(str(message.get("role") or message.get("type")))
        text = message_text(message.get("content"))
        if role is None or text is None:
            return None
        read.append({"role": role, "message": text})
    if not read or (len(read) > 1 and read[-1]["role"] != "user"):
        return None
    history: JsonObject = {"conversationHistory": read[:-1]} if len(read) > 1 else {}
    return {"input": read[-1]["message"], **history}


def ask_inputs(inputs: JsonObject) -> JsonObject:
    """Return the keys of a test case for named inputs: messages, the only text, or all of them as one value."""
    messages = inputs.get("messages")
    if isinstance(messages, list) and (asked := ask_messages(messages)):
        rest = {name: value for name, value in inputs.items() if name != "messages"}
        return {**asked, **_context(rest)}
    text = next(iter(inputs.values())) if len(inputs) == 1 else None
    return {"input": text if isinstance(text, str) else dict(inputs)}


def _context(values: Mapping[str, JsonValue]) -> JsonObject:
    return {"context": {name: json_text(value) for name, value in values.items()}} if values else {}


def kept_metadata(metadata: Mapping[str, JsonValue]) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the metadata that a test case can have, as its key, and what is left out of it."""
    kept = {name: value for name, value in metadata.items() if value not in (None, "", [], {})}
    left_out: list[str] = []
    while kept and (len(kept) > limits.MAX_METADATA_VALUES or len(orjson.dumps(kept)) > limits.MAX_METADATA_BYTES):
        longest = max(kept, key=lambda name: len(orjson.dumps(kept[name])))
        del kept[longest]
        left_out.append(f"{longest!r}, which is too long for metadata")
    return ({"metadata": kept} if kept else {}), tuple(left_out)
