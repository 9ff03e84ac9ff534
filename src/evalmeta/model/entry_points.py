"""Names of Python objects, `module:object`: evalmeta's own entry points, as packages have them, and those of users."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


_SUBJECTS: Final = "evalmeta.engine.subjects"
_FRAMEWORKS: Final = "evalmeta.systems.frameworks"
ENTRY_POINTS: Final[Mapping[str, Mapping[str, str]]] = {
    # The settings of agents, which bind them, in the order of the reference.
    "subjects": {
        "python": f"{_SUBJECTS}.python:PythonSubject",
        "replay": f"{_SUBJECTS}.replay:ReplaySubject",
        "openai": f"{_SUBJECTS}.openai:OpenAISubject",
        "http": f"{_SUBJECTS}.http:HttpSubject",
        "command": f"{_SUBJECTS}.command:CommandSubject",
        "agentforce": f"{_SUBJECTS}.agentforce:AgentforceSubject",
        "adk": "evalmeta.systems.adk.subject:AdkSubject",
        "a2a": "evalmeta.systems.a2a.subject:A2aSubject",
        "mcp": "evalmeta.systems.mcp.subject:McpSubject",
        "agent_script": "evalmeta.systems.agent_script.subject:AgentScriptSubject",
    },
    # Functions that return the settings of an agent which a call names by its folder, such as --agent weather_agent.
    "agent_folders": {"adk": "evalmeta.systems.adk.subject:adk_settings"},
    # Functions that return the settings of an agent whose source is in the project, by its name.
    "project_agents": {"agent_script": "evalmeta.systems.agent_script.subject:bundle_settings"},
    # Kinds of agents that are objects of a framework, by the packages that define their classes.
    "agents": {
        "langgraph": f"{_FRAMEWORKS}.langgraph:LANGGRAPH",
        "agents": f"{_FRAMEWORKS}.openai_agents:OPENAI_AGENTS",
        "pydantic_ai": f"{_FRAMEWORKS}.pydantic_ai:PYDANTIC_AI",
        "agent_framework": f"{_FRAMEWORKS}.agent_framework:AGENT_FRAMEWORK",
        "agent_framework._workflows": f"{_FRAMEWORKS}.agent_framework:AGENT_FRAMEWORK_WORKFLOWS",
        "llama_index": f"{_FRAMEWORKS}.llama_index:LLAMA_INDEX",
        "workflows": f"{_FRAMEWORKS}.llama_index:LLAMA_INDEX",
        "strands": f"{_FRAMEWORKS}.strands:STRANDS",
        "strands.multiagent": f"{_FRAMEWORKS}.strands_teams:STRANDS_TEAMS",
        "mlflow": f"{_FRAMEWORKS}.mlflow_models:MLFLOW",
        "google.adk": "evalmeta.systems.adk.live:AGENTS",
    },
    "rater_settings": {"rules": "evalmeta.model.settings:RulesRater", "llm": "evalmeta.engine.raters.llm:LlmRater"},
    "raters": {"rules": "evalmeta.rules_rater.rater:bind_rules"},
    # Packages may replace the scorer of any expectation, so these have names that no expectation has.
    "scorers": {
        "adk.custom_metric": "evalmeta.systems.adk.custom_metrics:score_by_function",
        "adk.response_match": "evalmeta.systems.adk.overlap:score_response_match",
    },
    # In the order in which the format of a file is recognised.
    "formats": {
        "definition": "evalmeta.formats.registry:DEFINITION",
        "run-eval": "evalmeta.systems.run_eval:RUN_EVAL",
        "adk": "evalmeta.systems.adk:ADK",
        "testspec": "evalmeta.formats.registry:TESTSPEC",
        "csv": "evalmeta.formats.registry:CSV",
        "ballerina": "evalmeta.systems.ballerina:BALLERINA",
        "databricks": "evalmeta.systems.databricks:DATABRICKS",
        "promptfoo": "evalmeta.systems.test_tools:PROMPTFOO",
        "pydantic-evals": "evalmeta.systems.test_tools:PYDANTIC_EVALS",
        "openai-evals": "evalmeta.systems.test_tools:OPENAI_EVALS",
        "inspect": "evalmeta.systems.test_tools:INSPECT",
        "langsmith": "evalmeta.systems.test_tools:LANGSMITH",
        "deepeval": "evalmeta.systems.test_tools:DEEPEVAL",
        "agents-cli": "evalmeta.systems.test_tools:AGENTS_CLI",
    },
    "reporters": {"ballerina": "evalmeta.systems.ballerina.writer:render"},
    "handlers": {
        "org-clients": "evalmeta.org_clients.handlers:HANDLERS",
        "run-eval": "evalmeta.systems.run_eval.handler:HANDLERS",
        "agent-script": "evalmeta.systems.agent_script.handler:HANDLERS",
    },
}


_PARTS: Final = re.compile(r"[\w.]+")


def is_target(text: str) -> bool:
    """Return whether a text is a valid `module:name`; both parts may have dots, and `shop.py` is a file."""
    module, _, name = text.partition(":")
    return not module.endswith(".py") and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))


def likely_target(text: str, *, name: str = "answer") -> str:
    """Return the `module:name` that was probably meant by a path or a dotted name.

    `name` replaces a name that is missing. `agents/shop:answer` and `agents\\shop.py:answer` mean `agents.shop:answer`.
    """
    # A Windows path begins with a drive and a colon.
    module, colon, given = text.rpartition(":") if ":" in text[2:] else (text, "", "")
    if not colon:
        is_path = module.endswith(".py") or "/" in module or "\\" in module
        module, _, given = (module, "", "") if is_path or "." not in module else module.rpartition(".")
    module = re.sub(r"[/\\]+", ".", module.removesuffix(".py")).strip(".")
    parts = [module or "my_agent", given or name]
    target = ":".join(parts)
    return target if all(map(_PARTS.fullmatch, parts)) and is_target(target) else "my_agent:answer"
