"""predict_fn as an agent: each call is recorded as a trace, which says what the agent did, and kept for the scorers."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.answer_shapes import answer_of
from evalmeta.errors import SubjectError
from evalmeta.model.json_value import plain_value
from evalmeta.systems.databricks.traces import known_text, read_trace
from evalmeta.systems.mlflow.entities import Trace
from evalmeta.systems.mlflow.recorded_agents import recorded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.engine.project_code import Function
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.systems.mlflow.rows import ScoredRow

_MOST_ANSWERS: Final = limits.MAX_KEPT_TRACES


@dataclass(slots=True)
class Answers:
    """What predict_fn returned and did, by the ids of its traces; only the last ones are kept."""

    by_id: OrderedDict[str, tuple[object, Trace]] = field(default_factory=OrderedDict)

    def keep(self, outputs: object, trace: Trace) -> None:
        """Keep an answer for the scorers of its case."""
        self.by_id[trace.info.trace_id] = outputs, trace
        if len(self.by_id) > _MOST_ANSWERS:
            self.by_id.popitem(last=False)

    def trace_of(self, generated: GeneratedData | None) -> Trace | None:
        """Return the trace of an answer; None if it has none."""
        value = generated.trace if generated else None
        if not isinstance(value, dict) or not isinstance(info := value.get("info"), dict):
            return None
        kept = self.by_id.get(str(info.get("trace_id")))
        return kept[1] if kept else Trace.from_dict(value)

    def outputs_of(self, generated: GeneratedData, row: ScoredRow) -> object:
        """Return what predict_fn returned, or else the outputs of the row, or the answer as it was kept."""
        value = generated.trace
        info = value.get("info") if isinstance(value, dict) else None
        if isinstance(info, dict) and (kept := self.by_id.get(str(info.get("trace_id")))):
            return kept[0]
        return generated.value if row.outputs is None else row.outputs


def asked(predict: Function, called: str, answers: Answers) -> object:
    """Return the agent: a function that calls predict_fn in a trace of its own."""
    return recorded(predict, called, partial(_answer, answers))


def _answer(answers: Answers, outputs: object, trace: Trace) -> Mapping[str, object]:
    """Return an answer with its actions, passages and tokens, as the spans of its trace report them."""
    if outputs is None:
        raise SubjectError("predict_fn returned None; let it return the answer")
    answers.keep(outputs, trace)
    value, written = plain_value(outputs), trace.to_dict()
    traced = read_trace(written).generated
    text = known_text(value) if isinstance(value, dict | list) else None
    shape: Mapping[str, object] = {}
    with suppress(SubjectError):
        shape = answer_of(value) or {}
    if len(trace.to_json()) > limits.MAX_ANSWER_CHARS:
        written = {**written, "data": {"spans": []}}
    return {
        "outcome": value if text is None else text,
        # A function without steps of its own does not report its actions, which is not the same as taking none.
        "actions": traced.actions if len(trace.data.spans) > 1 else shape.get("actions") or None,
        "tokens": traced.tokens or shape.get("tokens"),
        "retrieved": traced.retrieved,
        "session_id": traced.session_id,
        "trace": written,
    }
