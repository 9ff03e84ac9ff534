"""Scripts as compiled agent definitions, which clients of the preview API receive and send back.

A definition has the names in a script, in the form of Salesforce's compiler, and the script itself: a session carries
out the script. A definition that was changed, or that another org compiled, is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.agent_script.names import names_in_config
from evalmeta.agent_script.nodes import Literal, field_text
from evalmeta.errors import OrgFault
from evalmeta.protocol.json_fields import object_at, optional_text
from evalmeta.validation.script_rules import read_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.agent_script.nodes import Binding, Script, Subagent, Variable
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.problem import Problem, Severity
    from evalmeta.validation.rule import Rule


_LABEL: Final = "script"
_OURS: Final = "evalmeta"
_SOURCE: Final = "script"


def agent_name(script: Script) -> str:
    """Return the name of the agent in its block `config`; empty if it has none."""
    return next(iter(names_in_config(script)), "")


def compile_script(
    source: str, *, severity_of: Callable[[Rule], Severity | None]
) -> tuple[JsonObject | None, list[Problem]]:
    """Return the definition of a script, and the errors without which it would have one."""
    script, found = read_script(source, label=_LABEL, severity_of=severity_of)
    problems = [problem for problem in found if problem.is_error]
    return None if problems else _definition(script, source), problems


def read_definition(definition: JsonObject, *, severity_of: Callable[[Rule], Severity | None]) -> Script:
    """Return the script in a definition; raise OrgFault if it is not what this org compiled."""
    source = optional_text(object_at(definition, _OURS), _SOURCE)
    if source is None:
        raise OrgFault(
            "the agentDefinition was not compiled by this org",
            code="INVALID_INPUT",
            actions=["Compile the script here: start the preview without a definition of your own."],
        )
    script, found = read_script(source, label=_LABEL, severity_of=severity_of)
    if errors := [problem for problem in found if problem.is_error]:
        raise OrgFault(f"{errors[0].location}: {errors[0].message}", code="INVALID_INPUT")
    # Clients set the name of the version.
    if _without_version(definition) != _without_version(_definition(script, source)):
        raise OrgFault(
            "the agentDefinition was changed after it was compiled", code="INVALID_INPUT", actions=["Compile it again."]
        )
    return script


def _without_version(definition: JsonObject) -> JsonObject:
    return {**definition, "agentVersion": {**object_at(definition, "agentVersion"), "developerName": None}}


def _definition(script: Script, source: str) -> JsonObject:
    name = agent_name(script)
    return {
        "schemaVersion": "2.0",
        "globalConfiguration": {
            "developerName": name,
            "label": field_text(script.config, "agent_label") or name,
            "description": field_text(script.config, "description"),
            "enableEnhancedEventLogs": False,
            "agentType": field_text(script.config, "agent_type"),
            "templateName": "",
            "defaultAgentUser": field_text(script.config, "default_agent_user"),
            "defaultOutboundRouting": "",
            "contextVariables": [variable.name for variable in script.variables if variable.is_linked],
        },
        "agentVersion": {
            "developerName": None,
            "stateVariables": [_variable(variable) for variable in script.variables if not variable.is_linked],
            "initialNode": script.start.name if script.start else "",
            "nodes": [_node(subagent) for subagent in script.subagents],
        },
        _OURS: {_SOURCE: source},
    }


def _variable(variable: Variable) -> JsonObject:
    default: JsonValue = variable.default.value if isinstance(variable.default, Literal) else None
    return {
        "developerName": variable.name,
        "label": variable.name,
        "description": variable.description,
        "dataType": variable.type,
        "isList": variable.type.startswith("list"),
        "default": default,
    }


def _node(subagent: Subagent) -> JsonObject:
    return {
        "type": subagent.kind,
        "developerName": subagent.name,
        "label": subagent.label or subagent.name,
        "description": subagent.description,
        "tools": [_tool(binding) for binding in subagent.bindings],
        "actionDefinitions": [{"developerName": action.name, "target": action.target} for action in subagent.actions],
    }


def _tool(binding: Binding) -> JsonObject:
    target = None if binding.target is None else str(binding.target)
    return {"name": binding.name, "description": binding.description, "target": target}
