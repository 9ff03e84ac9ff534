"""Test specs proposed from an agent: a case for each topic and each action, which a person must review."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.api.agent_inventories import find_inventory
from evalmeta.errors import NotFound
from evalmeta.formats.testspec import read_spec
from evalmeta.formats.yaml_source import write_yaml

if TYPE_CHECKING:
    from evalmeta.formats.yaml_source import Yaml
    from evalmeta.model.agent_parts import AgentPart
    from evalmeta.package.project import Project

_WORDS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def propose_spec(project: Project, agent: str) -> tuple[bytes, int]:
    """Return a test spec with a case for each topic and action of an agent, and the number of its cases.

    The utterance is the example in the agent's files, or else the description or the name; each case is marked for
    review, because only a person knows what users say.

    Raises:
        NotFound: the agent, or its parts, are not known.
        FormatError: a script cannot be read.
    """
    inventory = find_inventory(project, agent)
    cases: list[Yaml] = [_case(part) for part in inventory.parts if part.kind in {"topic", "action"}]
    if not cases:
        raise NotFound(f"the agent {agent} has no topics and no actions, so there is no test case to propose")
    content = write_yaml({"subject": agent, "testCases": cases})
    read_spec(content, label="the proposed tests")
    return content, len(cases)


def _case(part: AgentPart) -> dict[str, Yaml]:
    utterance = part.utterance or part.description or " ".join(_WORDS.findall(part.name)).capitalize()
    if part.kind == "topic":
        return {"name": f"topic {part.name}", "input": utterance, "topic": part.name, "review": True}
    topic: dict[str, Yaml] = {"topic": part.topic} if part.topic else {}
    name = f"action {part.topic}.{part.name}" if part.topic else f"action {part.name}"
    # The agent may take other actions on the way to this one.
    expected: dict[str, Yaml] = {"actions": [part.name], "action_match": "superset"}
    return {"name": name, "input": utterance, **topic, **expected, "review": True}
