"""What the tests of an agent cover of its topics, actions, transitions and guards, and what its runs have shown."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.agent_inventories import find_inventory, has_changed, kept_inventory, listing_agents
from evalmeta.api.agent_tests import read_test
from evalmeta.api.discovery import find_tests, read_all
from evalmeta.api.runs.comparisons import find_run
from evalmeta.engine.scorers.actions import MATCH_RULES, match_name
from evalmeta.engine.scorers.trajectories import match_of_calls
from evalmeta.errors import NotFound
from evalmeta.model.coverage import AgentCoverage, Conversation, CoveredTurn, TestedCase, cover
from evalmeta.model.expectations import ACTIONS, TOPIC, canonical_name, parse_actions
from evalmeta.package.agent_files import agents_of
from evalmeta.package.files import shown
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import recent_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.api.discovery import FoundTests
    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case, Quarantines, Turn
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import CaseResult
    from evalmeta.model.run_options import ActionMatch
    from evalmeta.package.project import Project

_CALLS: Final = "calls"
"""The term of expectations with calls, as formats of other systems write them."""


class MeasuredCoverage(NamedTuple):
    """The coverage of agents.

    Attributes:
        others: the files of the project that could be tests and are none, with the reason.
        left_out: the agents that were not asked for their tools.
    """

    agents: Sequence[AgentCoverage]
    others: Mapping[Path, str]
    left_out: Sequence[str] = ()


def measure_coverage(project: Project, agent: str = "") -> MeasuredCoverage:
    """Return the coverage of an agent, or of all agents in the project's Agent Script and classic metadata.

    An agent that is not in files is asked for its tools, which may run its code; only if it is named. The tests are
    those in the files of the project; a definition that is in an org only does not count.

    Raises:
        NotFound: the project has no such agent, or the agent has nothing that tests could cover.
        FormatError, InvalidMetadata: a test or a script cannot be read.
        EvalmetaError: the agent cannot be imported, started or asked.
    """
    names = [agent] if agent else agents_of(project).agents()
    others = listing_agents(project)
    if not names:
        ways_out = [f"To let an agent list its tools, name it: evalmeta coverage {name}" for name in others[:1]]
        raise NotFound(
            "the project has no agent in Agent Script or classic metadata",
            actions=ways_out or ["docs/coverage.md says which agents can list their topics and tools."],
        )
    measured = _measure(project, {name: find_inventory(project, name) for name in names})
    return measured if agent else measured._replace(left_out=others)


def measure_known_coverage(project: Project, agent: str = "") -> MeasuredCoverage:
    """Return the coverage of an agent, or of all agents, without running code of any.

    Agents that are not in files have the parts that they listed when `measure_coverage` asked them last; those that
    were not asked yet are left out.

    Raises:
        NotFound: an agent in files has nothing that tests could cover.
        FormatError, InvalidMetadata: a test or a script cannot be read.
    """
    listing = [name for name in listing_agents(project) if not agent or name == agent]
    kept = {name: found for name in listing if (found := kept_inventory(project, name))}
    in_files = [name for name in agents_of(project).agents() if not agent or name == agent]
    inventories = {name: find_inventory(project, name) for name in in_files}
    measured = _measure(project, inventories | {name: found.inventory for name, found in kept.items()})
    agents = [
        replace(one, listed_at=found.read_at, is_outdated=has_changed(project, found))
        if (found := kept.get(one.agent))
        else one
        for one in measured.agents
    ]
    return measured._replace(agents=agents, left_out=[name for name in listing if name not in kept])


def _measure(project: Project, inventories: Mapping[str, Inventory]) -> MeasuredCoverage:
    found = _find_tests(project) if inventories else None
    tests = read_all(found.paths, lambda path: read_test(project, path, is_asked=False)) if found else []
    agents = [_coverage(project, name, inventory, tests) for name, inventory in inventories.items()]
    return MeasuredCoverage(agents, found.others if found else {})


def _find_tests(project: Project) -> FoundTests | None:
    try:
        return find_tests([project.root])
    except NotFound:
        return None


def _coverage(project: Project, agent: str, inventory: Inventory, tests: Sequence[FileTest]) -> AgentCoverage:
    own = [test for test in tests if test.subject_name.partition("@")[0] == agent]
    cases = [case for test in own for case in _tested_cases(project, test)]
    runs = [*_newest_results(project, agent)]
    seen = (conversation_of_result(result) for results in runs for result in results)
    not_counted = Counter(case.why_not for case in cases if case.why_not)
    counted = sum(not case.why_not for case in cases)
    return AgentCoverage(agent, cover(inventory, cases, seen), len(own), counted, dict(not_counted), len(runs))


def _tested_cases(project: Project, test: FileTest) -> Iterator[TestedCase]:
    quarantines = project.settings.quarantines_of(test.name, test.type.name, started=time.time())
    match = project.settings.run_options().scoring.action_match
    for case in test.evaluation.cases:
        label = f"{shown(test.path)}:{case.label or case.number}"
        yield TestedCase(label, conversation_of_case(case, match), _why_not_counted(case, quarantines))


def _why_not_counted(case: Case, quarantines: Quarantines) -> str:
    """Return why a case does not count: its results can neither pass nor fail a run; empty if it counts."""
    if case.not_run:
        return "not run"
    if case.review:
        return "to be reviewed"
    utterances = (turn.utterance for turn in case.turns)
    quarantine = quarantines.find(case.quarantine, case.number, case.label, *utterances)
    return "in quarantine" if quarantine and not quarantine.has_ended else ""


def conversation_of_case(case: Case, match: ActionMatch = "exact") -> Conversation:
    """Return the topics, actions and handoffs that a case expects; its history says where it begins.

    `match` is how its actions must match, unless their expectation says it.
    """
    topics = [message.topic for message in case.history if message.topic]
    return Conversation([_expected(turn, match) for turn in case.turns], topics[-1] if topics else "")


def conversation_of_result(result: CaseResult) -> Conversation:
    """Return the topics, actions and handoffs that the answers of a case have."""
    answers = [*(turn.generated for turn in result.earlier), *([result.generated] if result.generated else [])]
    return Conversation(
        [
            CoveredTurn(
                answer.topic or None,
                None if answer.actions is None else tuple(action.name for action in answer.actions),
                answer.handoffs,
            )
            for answer in answers
        ]
    )


def _expected(turn: Turn, match: ActionMatch) -> CoveredTurn:
    topic: str | None = None
    actions: tuple[str, ...] | None = _called(turn.inputs)
    handoffs: tuple[str, ...] | None = None
    forbidden: list[str] = []
    optional: list[str] = []
    closed: list[bool] = []
    for expectation in turn.expectations:
        name, value = canonical_name(expectation.name), expectation.expected_value or ""
        if name == TOPIC:
            topic = value.strip() or topic
        elif name == ACTIONS or _CALLS in expectation.terms:
            rule = MATCH_RULES[match_name(expectation, match) if name == ACTIONS else match_of_calls(expectation)]
            listed = parse_actions(value) or _names_in(expectation.terms.get(_CALLS))
            actions = (*(actions or ()), *(() if rule.allows_missing else listed))
            optional += listed if rule.allows_missing else ()
            closed.append(not rule.allows_extra)
        elif name in {"handoffs", "agent_handoff_match"}:
            handoffs = parse_actions(value) or tuple(filter(None, [value.strip().strip("[]")]))
        elif name == "not_actions":
            forbidden.append(value)
    return CoveredTurn(
        topic,
        actions,
        handoffs,
        tuple(forbidden),
        is_whole=handoffs is not None,
        optional=tuple(optional),
        allows_others=bool(closed) and not any(closed),
    )


def _called(inputs: JsonValue) -> tuple[str, ...] | None:
    """Return the tool that the message of a turn calls, as those to servers of MCP do; None for other messages."""
    tool = inputs.get("tool") if isinstance(inputs, Mapping) else None
    return (tool,) if isinstance(tool, str) else None


def _names_in(calls: JsonValue) -> tuple[str, ...]:
    named = (call.get("name") for call in calls if isinstance(call, Mapping)) if isinstance(calls, list) else ()
    return tuple(name for name in named if isinstance(name, str))


def _newest_results(project: Project, agent: str) -> Iterator[Sequence[CaseResult]]:
    """Yield the case results of the newest run of each test of an agent."""
    with open_database(project.store) as database:
        newest = [runs[-1] for runs in recent_runs(database, of_each=1, counted=False).values()]
    for run in newest:
        if run.subject.partition("@")[0] == agent:
            yield find_run(project, run.id, org_url=run.org_url).cases
