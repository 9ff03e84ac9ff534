"""A scripted model: a YAML file of rules instead of a language model, for tests that always go the same way.

    rules:
      - utterance: "*order*"            # * stands for any text, case does not matter
        subagent: greeter               # the active subagent
        when: "@variables.verified"     # a condition of Agent Script
        call: go_to_orders              # what is called, with the inputs that the model chooses
        with: {order_number: "1001"}
      - answer: "It is {!@outputs.status}."

The first rule that applies is used, at most once in a turn. A rule whose call is not available now does not apply.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.agent_script.evaluation import ScriptFault, evaluate, render
from evalmeta.agent_script.expressions import parse_template
from evalmeta.agent_script.lines import SourceText
from evalmeta.agent_script.nodes import SUBAGENT_KINDS, Position, Reference, Template, nodes_of
from evalmeta.errors import SubjectError, did_you_mean
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.yaml_source import YamlRecord, json_value, read_yaml
from evalmeta.package.files import read_file
from evalmeta.systems.agent_script.models import Decision, ToolCall
from evalmeta.systems.agent_script.tools import actions_of, callable_tools, tools_of_runs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from evalmeta.agent_script.nodes import Expression, Script, SyntaxProblem
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.systems.agent_script.models import Chooser, Request, Tool

_START: Final = Position(1, 1)
_ANYTHING: Final = ".*"
_USER_INPUT: Final = "user_input"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its conditions, and what it chooses; the answer is None if it is a call."""

    line: int
    utterances: tuple[re.Pattern[str], ...]
    subagent: str
    when: Expression | None
    call: str
    inputs: JsonObject
    answer: Template | None

    @property
    def always_answers(self) -> bool:
        """Return whether it answers, whatever the state is."""
        says_all = not self.utterances or any(pattern.pattern == _ANYTHING for pattern in self.utterances)
        return self.answer is not None and says_all and not self.subagent and self.when is None


class ScriptedModel:
    """Rules that choose the steps of an agent."""

    def __init__(self, rules: tuple[Rule, ...], label: str) -> None:
        self.rules = rules
        self.name = label

    def open(self, case: Case) -> Chooser:
        """Return what chooses the steps of a conversation."""
        return _RuleChooser(self.rules, self.name)

    async def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What a script has: what the model of each subagent may call, and the values that rules can read."""

    tools: Mapping[str, tuple[Tool, ...]]
    values: Mapping[str, Collection[str]]


def read_rules(path: Path, *, label: str, script: Script) -> ScriptedModel:
    """Read a file of rules; raise FormatError with each mistake, such as a subagent that the script does not have."""
    actions = (action for same_name in actions_of(script).values() for action in same_name)
    known = _Known(
        {subagent.name: tuple(callable_tools(script, subagent)) for subagent in script.subagents},
        {
            "variables": {variable.name for variable in script.variables},
            "outputs": {output.name for action in actions for output in action.outputs},
            "system_variables": {_USER_INPUT},
        },
    )
    file = read_yaml(read_file(path), label=label)
    diagnostics = Diagnostics(label)
    root = YamlRecord(file, (), file.value, diagnostics, called="the file of rules")
    root.check_keys("rules")
    rules = tuple(_rule(record, known) for record in root.records("rules", called="a rule"))
    _check_order(root, rules, script)
    if not rules and not diagnostics.has_errors:
        root.error("script-rule", "the file has no rules", hint="Begin it with the key rules and a list.")
    diagnostics.check()
    return ScriptedModel(rules, label)


def _check_order(root: YamlRecord, rules: tuple[Rule, ...], script: Script) -> None:
    """Report the rules below one that always answers, except those that choose inputs of `run`."""
    last = next((number for number, rule in enumerate(rules) if rule.always_answers), None)
    targets = [binding.target for subagent in script.subagents for binding in subagent.bindings]
    if last is None or any(isinstance(target, Reference) and target.namespace in SUBAGENT_KINDS for target in targets):
        # A subagent that is asked for its answer uses one rule, and the one that asks it the next.
        return
    asked = {tool.name for subagent in script.subagents for tool in tools_of_runs(script, subagent)}
    for number, rule in enumerate(rules[last + 1 :], last + 1):
        if rule.call not in asked:
            message = f"the rule is never used, because the rule in line {rules[last].line} always answers"
            root.error("script-rule", message, "rules", number, hint="Move it above that rule, or remove it.")


def _rule(record: YamlRecord, known: _Known) -> Rule:
    record.check_keys("utterance", "subagent", "when", "call", "with", "answer")
    subagent, call = record.text("subagent") or "", record.text("call") or ""
    if subagent and subagent not in known.tools:
        hint = did_you_mean(subagent, known.tools)
        record.error("script-rule", f"the script has no subagent {subagent!r}", "subagent", hint=hint)
    value = json_value(record.object("with"))
    inputs = value if isinstance(value, dict) else {}
    if call:
        _check_call(record, subagent, ToolCall(call, inputs), known)
    answer = record.text("answer")
    if bool(call) == (answer is not None):
        record.error("script-rule", "a rule has either 'call' or 'answer'")
    if record.has("with") and not call:
        record.error("script-rule", "'with' belongs to 'call'", "with")
    said = None if answer is None else _template(record, "answer", answer, known)
    utterances = tuple(_pattern(text) for _, text in record.one_or_more("utterance"))
    line, _ = record.source.place(record.path)
    return Rule(line, utterances, subagent, _condition(record, known), call, inputs, said)


def _check_call(record: YamlRecord, subagent: str, call: ToolCall, known: _Known) -> None:
    """Report a call that is never possible; what is possible in another subagent is checked when it is made."""
    tools = known.tools.get(subagent, tuple(tool for tools in known.tools.values() for tool in tools))
    named = [tool for tool in tools if tool.name == call.name]
    if not named:
        who = f"the subagent {subagent!r} cannot" if subagent in known.tools else "no subagent of the script can"
        hint = did_you_mean(call.name, [tool.name for tool in tools]) if tools else "It can call nothing."
        record.error("script-rule", f"{who} call {call.name!r}", "call", hint=hint)
    elif all(tool.fault(call.inputs) for tool in named):
        chosen = ", ".join(given.name for given in named[0].inputs) or "nothing"
        hint = f"The script leaves to the model: {chosen}."
        record.error("script-rule", named[0].fault(call.inputs), "with", hint=hint)


def _pattern(text: str) -> re.Pattern[str]:
    parts = " ".join(text.casefold().split()).split("*")
    return re.compile(_ANYTHING.join(map(re.escape, parts)))


def _condition(record: YamlRecord, known: _Known) -> Expression | None:
    """Return the condition of a rule; None if it has none, or if it is not one expression."""
    when = record.text("when")
    if when is None:
        return None
    parts = _template(record, "when", f"{{!{when}}}", known).parts
    if len(parts) > 1:
        record.error("script-rule", "'when' is not one condition", "when", hint="Remove the brace that ends it.")
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], str) else None


def _template(record: YamlRecord, key: str, text: str, known: _Known) -> Template:
    problems: list[SyntaxProblem] = []
    template = parse_template(SourceText(text, [0], [_START]), _START, problems)
    # All are at the place of the value, and the first one is the cause of the others.
    for problem in problems[:1]:
        record.error("script-rule", f"{key!r} cannot be read: {problem.message}", key, hint=problem.hint)
    references = [f"@{space}.{name}" for space, names in known.values.items() for name in names]
    for node in nodes_of(template):
        if isinstance(node, Reference) and str(node) not in references:
            hint = did_you_mean(str(node), references)
            record.error("script-rule", f"{node} has no value in rules", key, hint=hint)
    return template


class _Values:
    """What references in rules mean: the values of the script, and the outputs of the last action."""

    def __init__(self, request: Request) -> None:
        self._spaces: dict[str, JsonObject] = {
            "variables": request.variables,
            "outputs": request.outputs,
            "system_variables": {_USER_INPUT: request.utterance},
        }

    def value_of(self, reference: Reference) -> JsonValue:
        space = self._spaces.get(reference.namespace, {})
        if reference.member not in space:
            known = did_you_mean(reference.member, space) if space else ""
            raise ScriptFault(f"{reference} has no value. {known}".rstrip(), reference.position)
        return space[reference.member]


class _RuleChooser:
    def __init__(self, rules: tuple[Rule, ...], label: str) -> None:
        self._rules = rules
        self._label = label
        self._used: set[int] = set()

    async def choose(self, request: Request) -> Decision:
        if request.is_first:
            self._used.clear()
        offered = {tool.name for tool in request.tools}
        hidden: list[Rule] = []
        for number, rule in enumerate(self._rules):
            if number in self._used or not self._applies(rule, request):
                continue
            if rule.call and rule.call not in offered:
                hidden.append(rule)
                continue
            self._used.add(number)
            return self._decision(rule, request)
        raise self._no_rule(request, hidden)

    def _applies(self, rule: Rule, request: Request) -> bool:
        if request.must_call and not rule.call:
            return False
        if rule.subagent and rule.subagent != request.subagent:
            return False
        utterance = " ".join(request.utterance.casefold().split())
        if rule.utterances and not any(pattern.fullmatch(utterance) for pattern in rule.utterances):
            return False
        with self._line(rule):
            return rule.when is None or bool(evaluate(rule.when, _Values(request)))

    @contextmanager
    def _line(self, rule: Rule) -> Iterator[None]:
        try:
            yield
        except ScriptFault as fault:
            raise SubjectError(f"{self._label}:{rule.line}: {fault}") from None

    def _decision(self, rule: Rule, request: Request) -> Decision:
        if rule.answer is not None:
            with self._line(rule):
                return Decision(answer=render(rule.answer, _Values(request)))
        for tool in request.tools:
            # A model reads its mistake and repairs it; a rule would count as used, and the next one would hide it.
            if tool.name == rule.call and (fault := tool.fault(rule.inputs)):
                raise SubjectError(f"{self._label}:{rule.line}: {fault}")
        return Decision(calls=(ToolCall(rule.call, dict(rule.inputs)),))

    def _no_rule(self, request: Request, hidden: list[Rule]) -> SubjectError:
        why = f"no rule of {self._label} applies in {request.subagent}, where {request.offered} can be called"
        if hidden:
            lines = ", ".join(f"{rule.call} (line {rule.line})" for rule in hidden)
            why = f"{why}; these are not available now: {lines}"
        tool = request.tools[0].name if request.tools else ""
        choice = f"call: {tool}" if request.must_call else "answer: TEXT"
        lines = f'  - utterance: "{request.utterance}"\n    subagent: {request.subagent}\n    {choice}'
        return SubjectError(why, actions=[f"Add a rule to {self._label}:\n\n{lines}"])
