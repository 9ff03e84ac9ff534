"""A recorded run instead of a model: the choices in the steps of its answers, and the calls of its actions."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from evalmeta.errors import SubjectError
from evalmeta.model.steps import Step, StepKind, step_tree
from evalmeta.systems.agent_script.doubles import RecordedDouble
from evalmeta.systems.agent_script.models import Decision, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.engine.subjects.replay import Recordings
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import Action, GeneratedData
    from evalmeta.model.json_value import JsonValue
    from evalmeta.systems.agent_script.models import Chooser, Request


def recorded_doubles(recordings: Recordings) -> Mapping[str, RecordedDouble]:
    """Return the doubles of the actions that were called in a recorded run."""
    calls: dict[str, list[Action]] = {}
    for recording in recordings:
        for action in (recording.generated and recording.generated.actions) or ():
            calls.setdefault(action.name, []).append(action)
    return {name: RecordedDouble(actions) for name, actions in calls.items()}


class RecordedModel:
    """Repeats the choices that a model made in a recorded run, in the turns with the same utterances."""

    def __init__(self, recordings: Recordings, label: str) -> None:
        self._recordings = recordings
        self.name = label

    def open(self, case: Case) -> Chooser:
        """Return what repeats the choices for a case."""
        return _RecordedChooser(self._recordings, self.name, case.number)

    async def close(self) -> None:
        """Do nothing."""


class _RecordedChooser:
    def __init__(self, recordings: Recordings, label: str, number: int) -> None:
        self._recordings = recordings
        self._label = label
        self._number = number
        self._turn = 0
        self._decided: tuple[Decision, ...] = ()
        self._left: deque[Decision] = deque()

    async def choose(self, request: Request) -> Decision:
        if request.turn != self._turn:
            self._turn, self._decided = request.turn, tuple(self._decisions(request.utterance))
        if request.is_first:
            self._left = deque(self._decided)
        if not self._left:
            raise SubjectError(
                f"{self._label} has no further choice for {request.utterance[:100]!r}, in {request.subagent}",
                actions=["The script or its doubles have changed: record the run again."],
            )
        return self._left.popleft()

    def _decisions(self, utterance: str) -> Iterator[Decision]:
        recording = self._recordings.take(utterance, number=self._number)
        if recording is None or recording.generated is None:
            raise SubjectError(f"{self._label} has no answer to {utterance[:100]!r}")
        return _decisions_of(recording.generated)


def _decisions_of(generated: GeneratedData) -> Iterator[Decision]:
    tree = step_tree(generated)
    for step in _models(tree.steps if tree else ()):
        if isinstance(step.output, list):
            yield Decision(calls=tuple(_calls(step.output)), tokens=step.tokens)
        else:
            # Steps have the beginning of a long text.
            yield Decision(generated.outcome, tokens=step.tokens)


def _models(steps: Iterable[Step]) -> Iterator[Step]:
    for step in steps:
        if step.kind is StepKind.MODEL:
            yield step
        yield from _models(step.steps)


def _calls(chosen: Iterable[JsonValue]) -> Iterator[ToolCall]:
    for call in chosen:
        name = call.get("call") if isinstance(call, dict) else None
        inputs = call.get("with") if isinstance(call, dict) else None
        if isinstance(name, str) and isinstance(inputs, dict):
            yield ToolCall(name, inputs)
