"""Entry points of evalmeta itself, as packages have them: names with `module:object`, which is imported when needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class OwnPoint(NamedTuple):
    """An entry point of evalmeta: `module:object`, as in the metadata of packages."""

    value: str

    def load(self) -> object:
        """Import the object."""
        module, _, name = self.value.partition(":")
        loaded: object = getattr(import_module(module), name)
        return loaded


_SUBJECTS: Final = "evalmeta.engine.subjects"
OWN: Final[Mapping[str, Mapping[str, OwnPoint]]] = {
    # The settings of agents, which bind them, in the order of the reference.
    "subjects": {
        "python": OwnPoint(f"{_SUBJECTS}.python:PythonSubject"),
        "replay": OwnPoint(f"{_SUBJECTS}.replay:ReplaySubject"),
        "openai": OwnPoint(f"{_SUBJECTS}.openai:OpenAISubject"),
        "http": OwnPoint(f"{_SUBJECTS}.http:HttpSubject"),
        "command": OwnPoint(f"{_SUBJECTS}.command:CommandSubject"),
        "agentforce": OwnPoint(f"{_SUBJECTS}.agentforce:AgentforceSubject"),
    },
    "rater_settings": {
        "rules": OwnPoint("evalmeta.model.settings:RulesRater"),
        "llm": OwnPoint("evalmeta.engine.raters.llm.settings:LlmRater"),
    },
    "raters": {"rules": OwnPoint("evalmeta.rules_rater.rater:bind_rules")},
    # Packages may replace the scorer of any expectation, so these have names that no expectation has.
    "scorers": {
        "adk.custom_metric": OwnPoint("evalmeta.systems.adk.custom_metrics:score_by_function"),
        "adk.response_match": OwnPoint("evalmeta.systems.adk.overlap:score_response_match"),
    },
    # In the order in which the format of a file is recognised.
    "formats": {
        "definition": OwnPoint("evalmeta.formats.registry:DEFINITION"),
        "run-eval": OwnPoint("evalmeta.systems.run_eval:RUN_EVAL"),
        "adk": OwnPoint("evalmeta.systems.adk.format:ADK"),
        "testspec": OwnPoint("evalmeta.formats.registry:TESTSPEC"),
        "csv": OwnPoint("evalmeta.formats.registry:CSV"),
        "ballerina": OwnPoint("evalmeta.systems.ballerina:BALLERINA"),
        "databricks": OwnPoint("evalmeta.systems.databricks:DATABRICKS"),
    },
    "handlers": {
        "org-clients": OwnPoint("evalmeta.org_clients.handlers:HANDLERS"),
        "run-eval": OwnPoint("evalmeta.systems.run_eval.handler:HANDLERS"),
    },
}
