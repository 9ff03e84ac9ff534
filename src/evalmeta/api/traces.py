"""Traces: those of agents, read from files and kept as recorded answers, and those of runs, sent to a collector."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.engine.redaction import redacted_answer
from evalmeta.errors import FormatError, NotFound, ProjectError
from evalmeta.model.generated_data import actions_json
from evalmeta.model.redaction import HIDDEN, hide_secrets
from evalmeta.model.steps import step_tree, tree_json
from evalmeta.package.files import put_file, read_file, shown
from evalmeta.package.project import find_project
from evalmeta.report import stream
from evalmeta.report.text import count
from evalmeta.traces import otlp
from evalmeta.traces.exported_turns import exported_turns
from evalmeta.traces.spans import traces_of
from evalmeta.traces.turns import read_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from evalmeta.model.generated_data import Action
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.report.report import Report
    from evalmeta.traces.spans import Telemetry, Trace
    from evalmeta.traces.turns import TracedTurn


class ImportedTraces(NamedTuple):
    """The turns in files of traces, by their begin, and the number of traces that are not of an agent."""

    turns: tuple[TracedTurn, ...]
    others: int = 0


def import_traces(paths: Sequence[Path], *, folder: Path | None = None) -> ImportedTraces:
    """Read files of OTLP, without secrets; traces may be spread over files.

    What the settings of the project in `folder` redact is hidden, too.

    Raises:
        NotFound: a file cannot be found, or the files have no trace of an agent.
        FormatError: a file is damaged, or is not OTLP.
    """
    telemetry: list[Telemetry] = []
    for path in paths:
        if not path.is_file():
            raise NotFound(f"the file {shown(path)} cannot be found")
        telemetry += otlp.read_file(read_file(path, max_bytes=limits.MAX_TRACE_BYTES), label=shown(path))
    return turns_of(traces_of(telemetry), hide=hiding(folder), label=f"{', '.join(map(shown, paths))}: ")


def turns_of(traces: Sequence[Trace], *, hide: Callable[[str], str], label: str = "") -> ImportedTraces:
    """Return the turns in traces, in which `hide` hides secrets; raise NotFound if none is of an agent."""
    read = [of_trace for trace in traces if (of_trace := turns_in(trace, hide=hide)) is not None]
    turns = tuple(turn for of_trace in read for turn in of_trace)
    if not turns:
        raise NotFound(
            f"{label}{count(len(traces), 'trace')}, none of an agent or a model",
            actions=["Instrument the agent with a library that follows the GenAI conventions or OpenInference."],
        )
    return ImportedTraces(turns, len(traces) - len(read))


def turns_in(trace: Trace, *, hide: Callable[[str], str]) -> list[TracedTurn] | None:
    """Return the turns in a trace, without secrets; None if it is not of an agent."""
    turns = _turns(trace)
    return None if turns is None else [_without_secrets(turn, hide) for turn in turns]


def _turns(trace: Trace) -> Sequence[TracedTurn] | None:
    """Return the turns in a trace: those of a test run that evalmeta exported, or the one of an agent; None without."""
    if (exported := exported_turns(trace)) is not None:
        return exported
    turn = read_turn(trace)
    return [turn] if turn else None


def hiding(folder: Path | None) -> Callable[[str], str]:
    """Return what hides secrets, and what the project in a folder redacts."""
    try:
        declared = None if folder is None else find_project(folder).declared
    except ProjectError:
        declared = None
    patterns = [re.compile(pattern) for pattern in declared.redact.patterns] if declared else []

    def hide(text: str) -> str:
        for pattern in patterns:
            text = pattern.sub(HIDDEN, text)
        return hide_secrets(text)

    return hide


def _without_secrets(turn: TracedTurn, hide: Callable[[str], str]) -> TracedTurn:
    answer = redacted_answer(turn.generated(), hide)
    return turn._replace(
        utterance=None if turn.utterance is None else hide(turn.utterance),
        answer=None if turn.answer is None else answer.outcome,
        actions=answer.actions,
        retrieved=answer.retrieved,
        error=None if turn.error is None else hide(turn.error),
        exported=turn.exported and answer,
        # Without the actions, steps only name them, as before.
        steps=turn.steps and step_tree(replace(answer, actions=None)),
    )


def write_recordings(path: Path, turns: Iterable[TracedTurn]) -> int:
    """Write turns as recorded answers, which the adapter `replay` reads, and return how many.

    Turns without a known utterance are left out: no test could ask for them. So are those that are not whole.

    Raises:
        FormatError: no turn has an utterance; nothing is written.
    """
    lines = [orjson.dumps(recording_of(turn)) for turn in turns if turn.utterance is not None and turn.is_whole]
    if not lines:
        raise FormatError("no whole trace says what the user asked, so there is nothing to record")
    put_file(path, b"\n".join(lines) + b"\n")
    return len(lines)


def count_shared(turns: Iterable[TracedTurn]) -> int:
    """Return how many utterances were asked by a case of the same number in several runs.

    Recordings do not say which run they are from, so such a case may get the answer of another run.
    """
    runs: dict[tuple[int | None, str], set[str]] = defaultdict(set)
    for turn in turns:
        if turn.run and turn.utterance is not None:
            runs[turn.case, " ".join(turn.utterance.split())].add(turn.run)
    return sum(len(names) > 1 for names in runs.values())


def recording_of(turn: TracedTurn) -> JsonObject:
    """Return a turn as a line of recorded answers; what is unknown is absent."""
    asked: JsonObject = {"utterance": turn.utterance or "", **({} if turn.case is None else {"number": turn.case})}
    if turn.error is not None:
        return {**asked, "error": turn.error}
    if turn.answer is None:
        return {**asked, "error": "the trace does not say what the agent answered"}
    answer = turn.generated()
    tokens = answer.tokens
    known: dict[str, JsonValue] = {
        **asked,
        "outcome": answer.value,
        "topic": answer.topic,
        "actions": actions_json(answer.actions, with_latencies=True),
        "latency_ms": answer.latency_ms,
        "first_token_ms": answer.first_token_ms,
        "session_id": answer.session_id,
        "trace": answer.trace,
        "state": answer.state,
        "handoffs": None if answer.handoffs is None else list(answer.handoffs),
        "tokens": None
        if tokens is None
        else {"input": tokens.input, "output": tokens.output, "cached": tokens.cached, "model": tokens.model or None},
        "retrieved": None
        if answer.retrieved is None
        else [{"uri": passage.uri, "content": passage.content} for passage in answer.retrieved],
    }
    return {key: value for key, value in known.items() if value is not None}


def turn_json(turn: TracedTurn) -> JsonObject:
    """Return a turn as JSON: its recorded answer, its steps, the agents, and the rule that gave each value."""
    recorded = {key: value for key, value in recording_of(turn).items() if key != "trace"}
    tree = turn.steps or step_tree(turn.generated())
    return {
        "trace": turn.trace_id,
        **recorded,
        "utterance": turn.utterance,
        "agents": list(turn.agents),
        **(tree_json(tree) if tree else {}),
        "rules": turn.rules,
        "findings": list(turn.findings),
    }


def arguments_text(action: Action) -> str:
    """Return the arguments of an action as they are written in a call."""
    return ", ".join(f"{name}={orjson.dumps(value).decode()}" for name, value in action.input.items())


def check_collector(url: str) -> None:
    """Raise UsageError if runs cannot be sent to the collector at an address: its URL, the headers, or the extra."""
    from evalmeta.client.trace_collector import open_collector

    open_collector(url)


def send_runs(url: str, reports: Sequence[Report]) -> None:
    """Send runs as traces to a collector; raise CollectorError if it does not take them."""
    from evalmeta.client.trace_collector import open_collector, send

    send(open_collector(url), stream("otlp", reports))
