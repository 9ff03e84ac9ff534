"""Files of Ballerina's agent tests as evaluations: recorded conversations, and datasets of a data provider.

Each turn of a conversation (`*.evalset.json`) expects the calls with their arguments and the answer of its trace; the
same answer is not recorded as the agent's, because comparing a recording with itself proves nothing. Each entry of a
dataset is a case. `confidence` and `iterations` are the words of the proposal, `minPassRate` and `runs` those of
Ballerina's test framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.document import Document, read_bytes
from evalmeta.formats.json_source import read_json
from evalmeta.formats.records import Record
from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.expectations import ACTIONS, OUTCOME, render_actions
from evalmeta.systems.ballerina.threads import read_threads
from evalmeta.systems.ballerina.traces import UNKNOWN_ARGUMENTS, TraceError, all_tool_calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evalmeta.formats.json_source import JsonFile
    from evalmeta.model.json_value import JsonValue
    from evalmeta.systems.ballerina.traces import FunctionCall, Trace


_WHY_ASKED: Final = "its expected answers are its recorded answers, so an agent must be asked"
_QUERY: Final = "query"
_RATE: Final = ("confidence", "minPassRate", "min_pass_rate")
_RUNS: Final = ("iterations", "runs")
_TOOLS: Final = ("expectedTools", "expected_tools")
_OUTPUT: Final = ("expectedOutput", "expectedAnswer", "expected_output", "expected_answer")
_CONTEXT: Final = ("expectedContext", "expected_context")
_SET_KEYS: Final = ("id", "name", "description", *_RATE, *_RUNS, "entries")
_ENTRY_KEYS: Final = ("id", "input", *_TOOLS, *_OUTPUT, *_CONTEXT)


def read_ballerina(data: bytes, *, label: str, name: str) -> Document:
    """Read an evaluation set with `threads`, or a dataset: a list of entries, or an object with `entries`.

    Cases are numbered from 1 in the order of the file. Raise FormatError if it does not fit.
    """
    file, diagnostics = read_json(data, label=label), Diagnostics(label)
    if isinstance(file.value, dict) and "threads" in file.value:
        return _conversations(file, diagnostics, name)
    return _dataset(file, diagnostics, name)


def read_file(path: Path, *, label: str, name: str) -> Document:
    """Read a file as `files.read_document` does."""
    return read_ballerina(read_bytes(path), label=label, name=name)


def _conversations(file: JsonFile, diagnostics: Diagnostics, name: str) -> Document:
    threads = read_threads(file, diagnostics, is_strict=False)
    lines = file.lines_of(("threads",))
    diagnostics.check()
    cases: list[Case] = []
    case_lines: dict[int, int] = {}
    for place, thread in enumerate(threads):
        if not thread.traces:
            message = f"the thread {thread.id!r} has no traces; it is ignored"
            diagnostics.warn("ballerina-thread", message, line=lines[place], column=1)
            continue
        turns = (Turn(trace.user_message.content, tuple(_recorded_expectations(trace))) for trace in thread.traces)
        cases.append(Case(len(cases) + 1, tuple(turns), label=thread.id))
        case_lines[len(cases)] = lines[place]
    if not cases:
        diagnostics.error("ballerina-empty", "no thread has a trace", line=1, column=1)
    diagnostics.check()
    evaluation = Evaluation(name, "", tuple(cases))
    return Document(evaluation, why_asked=_WHY_ASKED, notes=diagnostics.notes, lines=case_lines)


def _recorded_expectations(trace: Trace) -> Iterator[Expectation]:
    calls = all_tool_calls(trace)
    if calls or trace.tool_calls is not None:
        names = render_actions(call.name for call in calls)
        yield Expectation(ACTIONS, names, terms={"calls": _calls_json(calls)} if _have_arguments(calls) else {})
    if not isinstance(trace.output, TraceError) and trace.output.content:
        yield Expectation(OUTCOME, trace.output.content)


def _have_arguments(calls: Sequence[FunctionCall]) -> bool:
    """Return whether a trace has the arguments of all calls; it has none if there is only a result of one."""
    return bool(calls) and not any(call.arguments is UNKNOWN_ARGUMENTS for call in calls)


def _calls_json(calls: Sequence[FunctionCall]) -> list[JsonValue]:
    return [{"name": call.name, "args": call.arguments} for call in calls]


def _dataset(file: JsonFile, diagnostics: Diagnostics, name: str) -> Document:
    rate, runs = None, None
    path: tuple[str, ...] = ()
    if not isinstance(file.value, list):
        record = Record(file, (), file.value, diagnostics, called="the dataset")
        record.check_keys(*_SET_KEYS)
        rate, runs, path = _min_pass_rate(record), _iterations(record), ("entries",)
        record.require("entries", hint="A dataset has entries, an evaluation set of conversations has threads.")
        record.items("entries")
    cases = tuple(_entry(number, record) for number, record in enumerate(_entries(file, path, diagnostics), 1))
    diagnostics.check()
    if not cases:
        diagnostics.error("ballerina-empty", "the dataset has no entries", line=1, column=1)
    diagnostics.check()
    lines = dict(enumerate(file.lines_of(path), 1))
    return Document(Evaluation(name, "", cases), runs, rate, notes=diagnostics.notes, lines=lines)


def _entries(file: JsonFile, path: Sequence[str], diagnostics: Diagnostics) -> Iterator[Record]:
    """Yield the entries; data providers return each in a list."""
    value = file.at(path)
    for place, item in enumerate(value if isinstance(value, list) else []):
        if not isinstance(item, list):
            yield Record(file, (*path, place), item, diagnostics, called="an entry")
        elif len(item) == 1:
            yield Record(file, (*path, place, 0), item[0], diagnostics, called="an entry")
        else:
            line, column = file.place((*path, place))
            message = f"an entry's list has {len(item)} values; one is allowed, the object with 'input'"
            diagnostics.error("ballerina-entry", message, line=line, column=column)


def _entry(number: int, record: Record) -> Case:
    record.check_keys(*_ENTRY_KEYS)
    expectations = tuple(_expectations(record))
    if not expectations:
        hint = f"Add {_TOOLS[0]!r} or {_OUTPUT[0]!r}."
        record.warn("ballerina-entry", "the entry expects nothing", hint=hint)
    hint = f"There is {_QUERY!r}; write 'input'." if record.has(_QUERY) else ""
    record.require("input", hint=hint)
    return Case(number, (Turn(record.text("input") or "", expectations),), label=record.text("id") or "")


def _expectations(record: Record) -> Iterator[Expectation]:
    for names in (_TOOLS, _OUTPUT, _CONTEXT):
        _check_spellings(record, names)
    if record.has(*_TOOLS):
        yield Expectation(ACTIONS, render_actions(text for _, text in record.texts(*_TOOLS)))
    for names in (_OUTPUT, _CONTEXT):
        if (text := record.text(*names)) is not None:
            yield Expectation(OUTCOME, text)


def _min_pass_rate(record: Record) -> float | None:
    _check_spellings(record, _RATE)
    rate = record.number(*_RATE)
    if rate is not None and not 0 <= rate <= 1:
        record.error("ballerina-range", f"{record.key(*_RATE)!r} is {rate:g}; 0 to 1 are allowed", record.key(*_RATE))
    return rate


def _iterations(record: Record) -> int | None:
    _check_spellings(record, _RUNS)
    runs = record.number(*_RUNS)
    if runs is None:
        return None
    if not runs.is_integer() or not 1 <= runs <= limits.MAX_ITERATIONS:
        allowed = f"whole numbers from 1 to {limits.MAX_ITERATIONS} are allowed"
        record.error("ballerina-range", f"{record.key(*_RUNS)!r} is {runs:g}; {allowed}", record.key(*_RUNS))
    return int(runs)


def _check_spellings(record: Record, names: Sequence[str]) -> None:
    """Report two spellings of a key with different values."""
    given = [name for name in names if record.has(name)]
    for other in given[1:]:
        if record.raw(other) != record.raw(given[0]):
            message = f"{given[0]!r} and {other!r} are two spellings of one key with different values"
            record.error("ballerina-conflict", message, other, hint="Keep one of them.")
