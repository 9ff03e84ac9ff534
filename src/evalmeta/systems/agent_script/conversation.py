"""One conversation with an agent in Agent Script: its turns are carried out as the language says.

A turn: `before_reasoning`, then the model chooses calls until it answers, then `after_reasoning`. The instructions are
built anew before each choice. A transition ends the procedure or the reasoning in which it happens, and continues with
the other subagent; one of `after_reasoning` says where the next turn begins. If an action fails, its callbacks are left
out: the procedure continues, and the model reads the error.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.agent_script.evaluation import ScriptFault
from evalmeta.agent_script.nodes import SUBAGENT_KINDS, Reference
from evalmeta.engine.answers import chat_messages
from evalmeta.engine.interfaces import NothingToClose
from evalmeta.errors import SubjectBusy, SubjectError
from evalmeta.model.agent_parts import HUMAN
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.steps import tree_json
from evalmeta.systems.agent_script.models import Request
from evalmeta.systems.agent_script.procedures import Place, Procedures, Turn
from evalmeta.systems.agent_script.state import State
from evalmeta.systems.agent_script.tools import bound_inputs, offers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evalmeta.agent_script.nodes import ActionDefinition, Field, Script, Subagent
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.systems.agent_script.doubles import Doubles
    from evalmeta.systems.agent_script.models import Chooser, Decision, Tool, ToolCall
    from evalmeta.systems.agent_script.tools import Offer

_HANDED_OFF: Final = "The conversation was handed off to a person."


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that conversations are held with.

    Attributes:
        label: the script's file, for messages.
        model: the name of what chooses, in the steps of answers.
        restarts: whether every turn begins at `start_agent`, instead of at the subagent that answered last.
    """

    script: Script
    start: Subagent
    label: str
    doubles: Doubles
    model: str
    restarts: bool = False


@dataclass(frozen=True, slots=True)
class _End:
    """How a subagent ended: with an answer, a transition, or a handoff to a person."""

    answer: str = ""
    target: Subagent | None = None
    is_handoff: bool = False


@dataclass(frozen=True, slots=True)
class _Result:
    """What the model reads about its call, and how the call ended the reasoning, if it did."""

    content: JsonValue
    end: _End | None = None


class Conversation(NothingToClose):
    """The session of a case: the variables, the messages and the active subagent stay over its turns."""

    def __init__(self, agent: Agent, chooser: Chooser, case: Case) -> None:
        self._agent = agent
        self._chooser = chooser
        with self._script_lines():
            self._state = State(agent.script, case)
        self._procedures = Procedures(agent.script, self._state, agent.doubles, ask_inputs=self._ask_inputs)
        self._messages: list[JsonObject] = list(chat_messages(case))
        self._turns = 0
        self._active: Subagent | None = None
        self._is_handed_off = False

    async def ask(self, utterance: str) -> GeneratedData:
        """Carry out a turn; raise SubjectError if the script, its model or a double does not say how to continue.

        If the model is busy, the turn has not taken place, and can be asked again.
        """
        if self._is_handed_off:
            raise SubjectError("the conversation was handed off to a person, so the agent does not answer any more")
        before = dict(self._state.values), len(self._messages), self._active
        self._turns += 1
        turn = Turn(self._turns, utterance)
        self._procedures.turn, self._state.user_input = turn, utterance
        self._messages.append({"role": "user", "content": utterance})
        try:
            with self._script_lines():
                answer, topic = await self._process(self._active or self._agent.start)
        except SubjectBusy:
            self._turns -= 1
            self._state.values, count, self._active = before
            del self._messages[count:]
            raise
        self._messages.append({"role": "assistant", "content": answer})
        return GeneratedData(
            answer,
            topic,
            tuple(turn.actions),
            tokens=turn.recorder.tokens,
            trace=tree_json(turn.recorder.tree()),
            state=dict(self._state.values),
            handoffs=tuple(turn.handoffs),
        )

    @contextmanager
    def _script_lines(self) -> Iterator[None]:
        try:
            yield
        except ScriptFault as fault:
            line, column = fault.position
            raise SubjectError(f"{self._agent.label}:{line}:{column}: {fault}") from None

    async def _process(self, subagent: Subagent) -> tuple[str, str]:
        """Carry out a subagent and those to which it transitions; return the answer and who gave it."""
        while True:
            with self._procedures.turn.recorder.subagent(subagent.name, self._state.values):
                end = await self._visit(subagent)
            if end.target is None:
                self._is_handed_off = end.is_handoff
                return end.answer, subagent.name
            subagent = end.target

    async def _visit(self, subagent: Subagent) -> _End:
        if subagent.procedures:
            raise ScriptFault(f"`{subagent.procedures[0][0]}` cannot be carried out without an org", subagent.position)
        place = Place(subagent)
        if target := await self._procedures.execute(subagent.before_reasoning, place):
            return _End(target=target)
        end = await self._reason(subagent)
        if end.target is None and not end.is_handoff:
            following = await self._procedures.execute(subagent.after_reasoning, place)
            self._active = following or (None if self._agent.restarts else subagent)
        return end

    async def _reason(self, subagent: Subagent) -> _End:
        script = self._agent.script
        own = subagent.system_instructions
        while True:
            texts: list[str] = []
            place = Place(subagent, texts=texts)
            system = script.system_instructions if own is None else own
            if target := await self._procedures.execute((*system, *subagent.instructions), place):
                return _End(target=target)
            tools = [offer.tool for offer in offers(script, subagent, self._state)]
            decision = await self._choose(subagent, texts, tools)
            if not decision.calls:
                return _End(decision.answer)
            if end := await self._carry_out(decision, subagent):
                return end

    async def _choose(
        self, subagent: Subagent, texts: Iterable[str], tools: Iterable[Tool], *, must_call: bool = False
    ) -> Decision:
        turn = self._procedures.turn
        turn.count_step()
        turn.choices += 1
        request = Request(
            *(turn.number, turn.choices == 1, turn.utterance, subagent.name),
            *("\n".join(texts), tuple(self._messages), tuple(tools)),
            must_call=must_call,
            variables=dict(self._state.values),
            outputs=turn.outputs,
        )
        start = turn.recorder.now()
        decision = await self._chooser.choose(request)
        calls: list[JsonValue] = [{"call": call.name, "with": call.inputs} for call in decision.calls]
        chosen: JsonValue = calls or decision.answer
        turn.recorder.model(self._agent.model, start, asked=request.instructions, chosen=chosen, tokens=decision.tokens)
        return decision

    async def _carry_out(self, decision: Decision, subagent: Subagent) -> _End | None:
        """Carry out the calls of the model until one ends the reasoning; the model reads what became of each."""
        calls = [(call.id or f"call_{len(self._messages)}_{place}", call) for place, call in enumerate(decision.calls)]
        self._messages.append(
            {
                "role": "assistant",
                "content": decision.answer or None,
                "tool_calls": [
                    {
                        "id": identifier,
                        "type": "function",
                        "function": {"name": call.name, "arguments": json.dumps(call.inputs, ensure_ascii=False)},
                    }
                    for identifier, call in calls
                ],
            }
        )
        end: _End | None = None
        for identifier, call in calls:
            result = _Result({"error": "the call was not carried out, because the reasoning had ended"})
            if end is None:
                result = await self._call(call, subagent, decision.answer)
                end = result.end
            content = json.dumps(result.content, ensure_ascii=False)
            self._messages.append({"role": "tool", "tool_call_id": identifier, "content": content})
        return end

    async def _call(self, call: ToolCall, subagent: Subagent, said: str) -> _Result:
        # A call before this one in the same reply may have changed what is available.
        available = offers(self._agent.script, subagent, self._state)
        offer = next((offer for offer in available if offer.binding.name == call.name), None)
        fault = offer.tool.fault(call.inputs) if offer else f"{call.name} cannot be called now"
        if offer is None or fault:
            recorder = self._procedures.turn.recorder
            recorder.tool(call.name, recorder.now(), inputs=call.inputs, error=fault)
            return _Result({"error": fault})
        if offer.action is not None:
            return await self._call_action(offer, offer.action, call, subagent)
        if offer.target == Reference("utils", "setVariables", offer.target.position):
            return await self._set_variables(offer, call, subagent)
        if below := (*offer.binding.inputs, *offer.binding.callbacks):
            raise ScriptFault(f"what follows {offer.target} cannot be carried out without an org", below[0].position)
        match offer.target.namespace, offer.target.member:
            case "utils", "transition":
                target = self._procedures.transition(offer.binding.to or offer.target)
                return _Result({"transition": target.name}, _End(target=target))
            case "utils", "escalate":
                return self._escalate(said)
            case kind, _ if kind in SUBAGENT_KINDS:
                self._procedures.transition(offer.target)
                answer, _ = await self._process(self._procedures.subagent_of(offer.target))
                self._procedures.turn.handoffs.append(subagent.name)
                return _Result({"answer": answer}, _End(answer, is_handoff=True) if self._is_handed_off else None)
        raise ScriptFault(f"{offer.target} cannot be called", offer.target.position)

    async def _call_action(self, offer: Offer, action: ActionDefinition, call: ToolCall, subagent: Subagent) -> _Result:
        connected = self._agent.script.connected_subagents if offer.target.namespace != "actions" else ()
        after = next((agent.after_response for agent in connected if agent.name == action.name), ())
        types = {parameter.name: parameter.type for parameter in action.inputs}
        inputs = bound_inputs(offer.binding.inputs, call.inputs, types, self._state.scope())
        callbacks = (*offer.binding.callbacks, *after)
        outcome, target = await self._procedures.call(action, inputs, callbacks, Place(subagent))
        content: JsonValue = outcome.outputs if outcome.error is None else {"error": outcome.error}
        return _Result(content, _End(target=target) if target else None)

    async def _set_variables(self, offer: Offer, call: ToolCall, subagent: Subagent) -> _Result:
        types = {chosen.name: chosen.type for chosen in offer.inputs}
        values = bound_inputs(offer.binding.inputs, call.inputs, types, self._state.scope())
        recorder = self._procedures.turn.recorder
        recorder.tool("setVariables", recorder.now(), inputs=values)
        self._state.values.update(values)
        target = await self._procedures.execute(offer.binding.callbacks, Place(subagent))
        return _Result({"set": values}, _End(target=target) if target else None)

    def _escalate(self, said: str) -> _Result:
        turn = self._procedures.turn
        turn.handoffs.append(HUMAN)
        turn.recorder.tool("escalate", turn.recorder.now(), inputs={"to": HUMAN})
        message = said or _first_text(self._agent.script.blocks, "escalation_message") or _HANDED_OFF
        return _Result({"escalated": True}, _End(message, is_handoff=True))

    async def _ask_inputs(self, tool: Tool, place: Place) -> JsonObject:
        decision = await self._choose(place.subagent, place.texts or (), [tool], must_call=True)
        call = next((call for call in decision.calls if call.name == tool.name), None)
        if call is None:
            raise SubjectError(f"the model did not choose the inputs of {tool.name}")
        if fault := tool.fault(call.inputs):
            raise SubjectError(f"the model chose inputs that cannot be used: {fault}")
        return call.inputs


def _first_text(fields: Iterable[Field], key: str) -> str:
    """Return the first text with a key in fields and those below them; empty without one."""
    for field in fields:
        text = field.text if field.key == key else _first_text(field.fields, key)
        if text:
            return text
    return ""
