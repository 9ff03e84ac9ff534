"""Doubles of actions: rows of a YAML file for each action, functions of the project, or the actions of a recorded run.

A row has `inputs`, and `outputs` or `error`, and perhaps `delay` in seconds. The first row whose inputs are those of
the call answers; a row without inputs answers every call. With `review: true`, its outputs were proposed, and a person
must review them.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from evalmeta import limits
from evalmeta.errors import SubjectError, did_you_mean
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.yaml_source import YamlRecord, json_value, read_yaml
from evalmeta.model.json_value import plain_json
from evalmeta.package.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from evalmeta.agent_script.nodes import ActionDefinition
    from evalmeta.engine.subjects.calls import Call
    from evalmeta.model.generated_data import Action
    from evalmeta.model.json_value import JsonObject, JsonValue

_KEYS: Final = ("inputs", "outputs", "error", "delay", "review")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an action returned: its outputs, or why it failed.

    `review` is the place of the row, if a person must review its outputs.
    """

    outputs: JsonObject
    error: str | None = None
    review: str = ""


class Double(Protocol):
    """Answers the calls of one action."""

    async def run(self, inputs: JsonObject) -> Outcome | None:
        """Return the outcome of a call; None if the double has none for these inputs."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the inputs that a call must have, and its outcome after some seconds."""

    inputs: JsonObject
    outcome: Outcome
    delay: float


class RowsDouble:
    """Answers with the first row whose inputs are equal to those of a call; inputs that a row omits may be anything."""

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self._rows = rows

    async def run(self, inputs: JsonObject) -> Outcome | None:
        """Return the outcome of the first row that fits, after its delay."""
        row = next((row for row in self._rows if _fits(row, inputs)), None)
        if row is None:
            return None
        if row.delay:
            await asyncio.sleep(row.delay)
        return row.outcome


def _fits(row: Row, inputs: JsonObject) -> bool:
    return all(name in inputs and inputs[name] == value for name, value in row.inputs.items())


class FunctionDouble:
    """A function of the project, which receives the inputs by their names and returns the outputs."""

    def __init__(self, call: Call, name: str) -> None:
        self._call = call
        self._name = name

    async def run(self, inputs: JsonObject) -> Outcome:
        """Return what the function returns."""
        result = await self._call(**inputs)
        try:
            outputs: JsonValue = json.loads(json.dumps(result, allow_nan=False, default=plain_json))
        except (TypeError, ValueError, RecursionError) as error:
            raise SubjectError(f"the function {self._name} returned no valid JSON: {error}") from None
        if not isinstance(outputs, dict):
            raise SubjectError(f"the function {self._name} must return a mapping of outputs")
        return Outcome(outputs)


class RecordedDouble:
    """The calls of an action in a recorded run: the last call with the same inputs answers."""

    def __init__(self, actions: Iterable[Action]) -> None:
        self._outcomes = {_key(action.input): action for action in actions}

    async def run(self, inputs: JsonObject) -> Outcome | None:
        """Return what the recorded call returned."""
        action = self._outcomes.get(_key(inputs))
        if action is None:
            return None
        outputs = action.output if isinstance(action.output, dict) else {}
        return Outcome(outputs, action.error, action.review)


def _key(inputs: JsonObject) -> str:
    return json.dumps(inputs, sort_keys=True)


class Doubles:
    """The doubles of a script's actions, in the order in which they are tried; `files` are those with their rows."""

    def __init__(
        self,
        doubles: Mapping[str, tuple[Double, ...]],
        files: Mapping[str, str],
        agent: str,
        *,
        examples: Callable[[str], tuple[JsonObject, bool]],
    ) -> None:
        """Take the doubles and files by the names of actions.

        `examples` returns example outputs of an action, and whether a person must review them.
        """
        self._doubles = doubles
        self._files = files
        self._agent = agent
        self._examples = examples

    async def run(self, name: str, inputs: JsonObject) -> Outcome:
        """Return the outcome of a call; raise SubjectError, with the row to add, if no double has one."""
        for double in self._doubles.get(name, ()):
            if (outcome := await double.run(inputs)) is not None:
                return outcome
        outputs, needs_review = self._examples(name)
        row = (
            f"- inputs: {json.dumps(inputs, ensure_ascii=False)}\n  outputs: {json.dumps(outputs, ensure_ascii=False)}"
        )
        row += "\n  review: true" if needs_review else ""
        raise SubjectError(
            f"no double answers the action {name} with the inputs {json.dumps(inputs, ensure_ascii=False)}",
            actions=[
                f"Add this row to {self._files[name]}, with its own outputs instead of these examples:\n\n{row}",
                f"Or write example outputs of all actions: evalmeta generate doubles {self._agent}",
            ],
        )


def read_rows(path: Path, actions: Sequence[ActionDefinition], *, label: str) -> RowsDouble:
    """Read the rows of the actions with one name; raise FormatError with each mistake.

    A row belongs to one of the actions: that has all its inputs and outputs.
    """
    file = read_yaml(read_file(path), label=label)
    diagnostics = Diagnostics(label)
    if not isinstance(file.value, list) or not file.value:
        diagnostics.error("script-double", "the file has no list of rows", line=1, hint="Begin each row with '- '.")
        diagnostics.check()
    rows = [
        _row(YamlRecord(file, (number,), value, diagnostics, called="a row"), actions, label)
        for number, value in enumerate(file.value if isinstance(file.value, list) else ())
    ]
    for number, row in enumerate(rows):
        earlier = next((place for place, other in enumerate(rows[:number]) if _covers(other, row)), None)
        if earlier is not None:
            (line, _), (above, _) = file.place((number,)), file.place((earlier,))
            message = f"the row is never used, because the row in line {above} answers the same calls"
            diagnostics.error("script-double", message, line=line, hint="Move it above that row, or remove it.")
    diagnostics.check()
    return RowsDouble(tuple(rows))


def _covers(row: Row, later: Row) -> bool:
    """Return whether a row answers all calls that a later one could answer."""
    return all(name in later.inputs and later.inputs[name] == value for name, value in row.inputs.items())


def _row(record: YamlRecord, actions: Sequence[ActionDefinition], label: str) -> Row:
    record.check_keys(*_KEYS)
    inputs, outputs = record.object("inputs"), record.object("outputs")
    unknown = [_unknown_names(action, inputs, outputs) for action in actions]
    for key, name, known in min(unknown, key=len):
        what = f"the action {actions[0].name} has no {key} {name!r}"
        record.error("script-double", what, f"{key}s", name, hint=did_you_mean(name, known) if known else "")
    error = record.text("error")
    if record.has("outputs") == (error is not None):
        record.error("script-double", "a row has either 'outputs' or 'error'")
    delay = record.number("delay") or 0.0
    if not 0 <= delay <= limits.MAX_CASE_TIMEOUT_SECONDS:
        record.error("script-double", "'delay' is not a number of seconds within the time of a case", "delay")
    line, _ = record.source.place(record.path)
    review = f"{label}:{line}" if record.boolean("review") else ""
    return Row(_plain(inputs), Outcome(_plain(outputs), error, review), delay)


class _Unknown(NamedTuple):
    """A name in a row that an action does not declare: the key of the row, the name, and those that it declares."""

    key: str
    name: str
    known: list[str]


def _unknown_names(action: ActionDefinition, inputs: JsonObject, outputs: JsonObject) -> list[_Unknown]:
    unknown: list[_Unknown] = []
    for key, values, parameters in (("input", inputs, action.inputs), ("output", outputs, action.outputs)):
        known = [parameter.name for parameter in parameters]
        unknown += [_Unknown(key, name, known) for name in values if name not in known]
    return unknown


def _plain(values: JsonObject) -> JsonObject:
    value = json_value(values)
    return value if isinstance(value, dict) else {}
