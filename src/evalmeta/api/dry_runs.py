"""What runs would ask: the tests, their cases, the agent and who judges, without asking anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalmeta.api.documents import with_document
from evalmeta.api.sides import fetch
from evalmeta.engine.plan import choose
from evalmeta.model.evaluation import evaluation_of
from evalmeta.xmlio.reader import read_xml
from evalmeta.xmlio.sketch import sketch_definition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.api.choices import Choice
    from evalmeta.api.tests import AgentTest
    from evalmeta.client.connection import Connection
    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import RunOptions

__all__ = ["PlannedRun", "plan_runs"]


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What a run would ask.

    Attributes:
        cases: those that would be asked, in each iteration.
        left_out: how many other cases the definition has.
        expectations: how often each name is judged in one iteration.
    """

    definition: str
    type: str
    subject_name: str
    cases: tuple[Case, ...]
    left_out: int
    iterations: int
    expectations: Mapping[str, int]

    @property
    def questions(self) -> int:
        """Gives how many questions the agent would be asked, nothing tried again."""
        return sum(len(case.turns) for case in self.cases) * self.iterations


async def plan_runs(
    connection: Connection, tests: Sequence[AgentTest], choice: Choice, options: RunOptions
) -> list[PlannedRun]:
    """Gives what a run of each test would ask, by the definitions in the org.

    Raises:
        OrgError: the org cannot be reached or refuses a call.
    """
    deployed = [test for test in tests if test.file is None]
    kinds = dict.fromkeys(test.type for test in deployed)
    contents = {kind: await _contents(connection, kind, deployed) for kind in kinds}
    evaluations = {test.key: test.file.evaluation for test in tests if test.file}
    for test in deployed:
        if content := contents[test.type].get(test.full_name):
            definition = sketch_definition(read_xml(content, label=test.full_name))
            evaluations[test.key] = evaluation_of(definition, name=test.full_name)
    return [
        _planned(test, evaluations[test.key], replace(_own(options, test), cases=choice.numbers(test)))
        for test in tests
        if test.key in evaluations
    ]


def _own(options: RunOptions, test: AgentTest) -> RunOptions:
    return with_document(options, test.file.document) if test.file else options


async def _contents(connection: Connection, kind: MetadataType, tests: Sequence[AgentTest]) -> dict[str, bytes]:
    names = [test.full_name for test in tests if test.type == kind]
    return {each.full_name: each.content for each in await fetch(connection, kind, names)}


def _planned(test: AgentTest, evaluation: Evaluation, options: RunOptions) -> PlannedRun:
    cases = tuple(choose(evaluation, options))
    judged = Counter(each.name for case in cases for turn in case.turns for each in turn.expectations)
    left_out = sum(1 for _ in evaluation.cases) - len(cases)
    return PlannedRun(
        test.full_name,
        test.type.name,
        evaluation.subject_name,
        cases,
        left_out,
        options.iterations,
        dict(sorted(judged.items())),
    )
