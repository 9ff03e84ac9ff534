"""Names of Python objects, `module:object`: evalmeta's own entry points, as packages have them, and those of users."""

from __future__ import annotations

import re
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


EXAMPLE: Final = "my_agent:answer"
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
    return target if all(map(_PARTS.fullmatch, parts)) and is_target(target) else EXAMPLE
