"""Rules about Agent Script: references to nothing, and parts that never run."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.agent_script.nodes import (
    START_AGENT,
    SUBAGENT_KINDS,
    Binding,
    If,
    Position,
    Reference,
    Run,
    Script,
    Set,
    nodes_of,
)
from evalmeta.agent_script.parser import parse_script
from evalmeta.errors import nearest_word
from evalmeta.model.problem import Location, Problem
from evalmeta.validation.rule import ERROR, WARNING, RuleTable, nearest, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from evalmeta.agent_script.nodes import ActionDefinition, Subagent, SyntaxProblem
    from evalmeta.model.problem import Severity
    from evalmeta.validation.rule import Rule


class ScriptFinding(NamedTuple):
    """One finding of a rule, and its place in the script; a hint that takes long is made when it is shown."""

    message: str
    position: Position
    hint: str | Callable[[], str]


SCRIPTS: Final[RuleTable[Script, ScriptFinding]] = RuleTable()

_KEYS: Final = (
    *("label", "description", "system", "actions", "before_reasoning", "reasoning", "after_reasoning"),
    *("model_config", "schema", "parameters", "on_init", "on_exit"),
)
# Finding the most similar name takes far longer than finding that there is no such name.
_MAX_HINTS: Final = 25
_MAX_NAMES: Final = 500
_NO_HINT: Final = "Define it, or remove the reference."
_CONNECTED: Final = "connected_subagent"
_HAS_NO: Final = {"variables": "variable", "actions": "action", _CONNECTED: "connected agent"}


def check_script(data: bytes, *, label: str, severity_of: Callable[[Rule], Severity | None]) -> list[Problem]:
    """Return the problems of a script: those of its syntax, or else those of the rules."""
    if len(data) > limits.MAX_SCRIPT_BYTES:
        message = f"the script is larger than {limits.MAX_SCRIPT_BYTES:,} bytes"
        return [Problem("script-syntax", ERROR, Location(label), message, "Divide the agent into several.")]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return [Problem("script-syntax", ERROR, Location(label, line), "the script is not UTF-8", "Save it as UTF-8.")]
    return read_script(text, label=label, severity_of=severity_of)[1]


def read_script(
    text: str, *, label: str, severity_of: Callable[[Rule], Severity | None]
) -> tuple[Script, list[Problem]]:
    """Return a script and its problems: those of its syntax, or else those of the rules."""
    script, unread = parse_script(text)
    if unread:
        return script, syntax_problems(unread, label)
    return script, rule_problems(script, label=label, severity_of=severity_of)


def rule_problems(script: Script, *, label: str, severity_of: Callable[[Rule], Severity | None]) -> list[Problem]:
    """Return what the rules say about a script; one more problem than are reported of a file, if there are many."""
    found = (
        (declared, severity, finding)
        for declared, check in SCRIPTS.checks()
        if (severity := severity_of(declared))
        for finding in check(script)
    )
    problems: list[Problem] = []
    for number, (declared, severity, finding) in enumerate(islice(found, limits.MAX_PROBLEMS + 1)):
        hint = finding.hint
        if not isinstance(hint, str):
            hint = hint() if number < _MAX_HINTS else _NO_HINT
        problems.append(Problem(declared.code, severity, Location(label, *finding.position), finding.message, hint))
    return problems


def syntax_problems(unread: Iterable[SyntaxProblem], label: str) -> list[Problem]:
    """Return what the parser could not read, as problems of a file."""
    return [
        Problem("script-syntax", ERROR, Location(label, *problem.position), problem.message, problem.hint)
        for problem in unread
    ]


@rule("script-start", SCRIPTS, documented=ERROR, orgs=ERROR)
def find_script_start(script: Script) -> Iterator[ScriptFinding]:
    """A script has one `start_agent`."""
    starts = [subagent for subagent in script.subagents if subagent.kind == START_AGENT]
    for second in starts[1:]:
        message = f"the script has a second start_agent, {second.name!r}"
        yield ScriptFinding(message, second.position, "Keep one, and begin the others with `subagent`.")
    if not starts:
        hint = "Begin the subagent that receives the first utterance with `start_agent`."
        place = script.subagents[0].position if script.subagents else Position(1, 1)
        yield ScriptFinding("the script has no start_agent", place, hint)


@rule("script-reference", SCRIPTS, documented=ERROR, orgs=ERROR)
def find_script_reference(script: Script) -> Iterator[ScriptFinding]:
    """References name variables, actions, inputs, outputs and subagents that the script has."""
    connected = {agent.name for agent in script.connected_subagents}
    subagents = {subagent.name for subagent in script.subagents}
    known = {
        "variables": {variable.name for variable in script.variables},
        "actions": {action.name for action in script.actions} | connected,
        _CONNECTED: connected,
        **dict.fromkeys(SUBAGENT_KINDS, subagents | connected),
    }
    for subagent in script.subagents:
        own = {action.name for action in subagent.actions} | {binding.name for binding in subagent.bindings}
        yield from _unknown_references(subagent, {**known, "actions": known["actions"] | own})
        yield from _unknown_chosen(subagent, known["variables"])
    yield from _unknown_parameters(script)
    for part in (*script.system_instructions, *script.messages, *script.connected_subagents):
        yield from _unknown_references(part, known)


def _unknown_chosen(subagent: Subagent, variables: set[str]) -> Iterator[ScriptFinding]:
    """Yield the names in `@utils.setVariables` that no variable has."""
    for binding in subagent.bindings:
        for given in binding.inputs if str(binding.target) == "@utils.setVariables" else ():
            if given.name not in variables:
                message = f"there is no variable {given.name!r} to set"
                yield ScriptFinding(message, given.position, partial(_nearest_of, given.name, variables))


def _unknown_references(node: object, known: Mapping[str, set[str]]) -> Iterator[ScriptFinding]:
    for reference in nodes_of(node):
        if not isinstance(reference, Reference) or reference.namespace not in known or not reference.member:
            continue
        names = known[reference.namespace]
        if reference.member not in names:
            what = _HAS_NO.get(reference.namespace, "subagent")
            message = f"{reference} refers to nothing: there is no {what} {reference.member!r} here"
            yield ScriptFinding(message, reference.position, partial(_meant, reference, names))


def _nearest_of(name: str, known: Collection[str]) -> str:
    return nearest(name, sorted(known)) if len(known) <= _MAX_NAMES else _NO_HINT


def _meant(reference: Reference, names: Collection[str]) -> str:
    if not 0 < len(names) <= _MAX_NAMES:
        return _NO_HINT
    options = sorted(names)
    near = nearest_word(reference.member, options)
    return f"Did you mean @{reference.namespace}.{near}?" if near else f"Known: {', '.join(options)}."


def _unknown_parameters(script: Script) -> Iterator[ScriptFinding]:
    """Yield inputs that are given to an action, and outputs that are read, if it declares others."""
    for call, action in _calls(script):
        given = ((given.name, given.position) for given in call.inputs)
        read = ((output.member, output.position) for output in _outputs_in(call.callbacks) if output.member)
        for kind, parameters, used in (("input", action.inputs, given), ("output", action.outputs, read)):
            declared = sorted(parameter.name for parameter in parameters)
            # Targets of Apex and flows may have prefixes, as in "Input:Event_Type".
            names = {*declared, *(name.rpartition(":")[2] for name in declared)}
            for name, position in used if names else ():
                if name not in names:
                    message = f"the action {action.name!r} has no {kind} {name!r}"
                    yield ScriptFinding(message, position, partial(_nearest_of, name, declared))


def _calls(script: Script) -> Iterator[tuple[Run | Binding, ActionDefinition]]:
    """Yield what calls an action that the script defines, and the action."""
    for subagent in script.subagents:
        actions = {action.name: action for action in (*script.actions, *subagent.actions)}
        for node in nodes_of(subagent):
            called = node.action if isinstance(node, Run) else node.target if isinstance(node, Binding) else None
            if not isinstance(node, Run | Binding) or not isinstance(called, Reference):
                continue
            if called.namespace == "actions" and called.member in actions:
                yield node, actions[called.member]


def _outputs_in(node: object) -> Iterator[Reference]:
    """Yield the outputs that statements read of the action that they follow, not of one that they run themselves."""
    if isinstance(node, Run):
        yield from _outputs_in(node.inputs)
    elif isinstance(node, tuple):
        for part in node:
            yield from _outputs_in(part)
    elif isinstance(node, If):
        yield from _outputs_in((node.condition, node.then, node.otherwise))
    else:
        references = (part for part in nodes_of(node) if isinstance(part, Reference))
        yield from (reference for reference in references if reference.namespace == "outputs")


@rule("script-key", SCRIPTS, documented=ERROR, orgs=ERROR)
def find_script_key(script: Script) -> Iterator[ScriptFinding]:
    """The keys of a subagent are those of the language: a misspelt block never runs."""
    for subagent in script.subagents:
        for field in subagent.fields:
            near = nearest_word(field.key, _KEYS)
            if near and field.key not in _KEYS:
                message = f"the subagent {subagent.name!r} has an unknown key {field.key!r}"
                yield ScriptFinding(message, field.position, f"Did you mean {near}?")


@rule("script-linked", SCRIPTS, documented=ERROR, orgs=ERROR)
def find_script_linked(script: Script) -> Iterator[ScriptFinding]:
    """No linked variable is set: its value comes from the session."""
    linked = {variable.name for variable in script.variables if variable.is_linked}
    for node in nodes_of(script.subagents):
        names: list[tuple[str, Position]] = []
        if isinstance(node, Set) and isinstance(node.target, Reference) and node.target.namespace == "variables":
            names = [(node.target.member, node.target.position)]
        elif isinstance(node, Binding) and str(node.target) == "@utils.setVariables":
            names = [(given.name, given.position) for given in node.inputs]
        for name, position in names:
            if name in linked:
                message = f"the variable {name!r} is set, but it is linked: its value comes from the session"
                yield ScriptFinding(message, position, "Declare it as `mutable`, or set another variable.")


@rule("script-unreachable", SCRIPTS, documented=WARNING, orgs=WARNING)
def find_script_unreachable(script: Script) -> Iterator[ScriptFinding]:
    """Transitions lead from `start_agent` to each subagent."""
    if script.start is None:
        return
    by_name = {subagent.name: subagent for subagent in script.subagents}
    reached, waiting = {script.start.name}, [script.start.name]
    while waiting:
        for node in nodes_of(by_name[waiting.pop()]):
            if not isinstance(node, Reference) or node.namespace not in SUBAGENT_KINDS:
                continue
            if node.member in by_name and node.member not in reached:
                reached.add(node.member)
                waiting.append(node.member)
    for subagent in script.subagents:
        if subagent.name not in reached and subagent.kind != START_AGENT:
            message = f"the subagent {subagent.name!r} is never reached: no transition leads to it"
            hint = f"Add `transition to @subagent.{subagent.name}`, or remove the subagent."
            yield ScriptFinding(message, subagent.position, hint)


@rule("script-target", SCRIPTS, documented=WARNING, orgs=WARNING)
def find_script_target(script: Script) -> Iterator[ScriptFinding]:
    """Each action has a target, which an org runs."""
    for action in (*script.actions, *(action for subagent in script.subagents for action in subagent.actions)):
        if not action.target:
            message = f"the action {action.name!r} has no target"
            yield ScriptFinding(message, action.position, 'Add it, such as target: "flow://Find_Order".')
