"""A conversation with an agent, turn by turn, which can be saved as a test case."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from evalmeta import limits
from evalmeta.api.specs import write_converted
from evalmeta.engine.redaction import with_redaction
from evalmeta.errors import SubjectError, UsageError
from evalmeta.formats.testspec import read_spec
from evalmeta.formats.yaml_source import write_yaml
from evalmeta.model.definition import ContextVariable
from evalmeta.model.evaluation import Case, Turn
from evalmeta.org.subjects import bind_subject

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.formats.yaml_source import Yaml
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.package.project import Project


class AgentChat:
    """One conversation with the agent that a project knows by a name; `with` ends it."""

    def __init__(self, project: Project, agent: str, *, context: Mapping[str, str]) -> None:
        """Bind the agent; raise SubjectNotBound or SettingsError if it cannot be used."""
        bound = bind_subject(project.settings.subjects, agent, root=project.root)
        self._subject: Subject = with_redaction(bound, project.settings.redact.patterns)
        self._agent = agent
        self._context = dict(context)
        self._turns: list[tuple[str, GeneratedData]] = []
        self._runner = asyncio.Runner()
        self._session: Session | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._runner.run(self._end())
        self._runner.close()

    @property
    def turns(self) -> int:
        """Return how many turns the agent has answered."""
        return len(self._turns)

    def ask(self, utterance: str) -> GeneratedData:
        """Return the agent's answer; raise SubjectError if there is none within the time of a case."""
        generated = self._runner.run(self._ask(utterance))
        self._turns.append((utterance, generated))
        return generated

    def save(self, path: Path, *, overwrite: bool = False) -> int:
        """Write the conversation as a case of a test spec, marked for review, and return the number of its turns.

        It expects the topic and the actions of each turn; whether an answer was good is for a person to say.
        """
        if not self._turns:
            raise UsageError("the conversation has no turn, so there is no test case to save")
        content = write_yaml({"subject": self._agent, "testCases": [self._case()]})
        read_spec(content, label="the test case")
        write_converted(path, content, overwrite=overwrite)
        return len(self._turns)

    def _case(self) -> dict[str, Yaml]:
        turns = [_turn(utterance, generated) for utterance, generated in self._turns]
        body: dict[str, Yaml] = turns[0] if len(turns) == 1 else {"turns": turns}
        variables: list[Yaml] = [{"name": name, "value": value} for name, value in self._context.items()]
        return {**body, **({"contextVariables": variables} if variables else {}), "review": True}

    async def _ask(self, utterance: str) -> GeneratedData:
        if self._session is None:
            variables = tuple(ContextVariable(name, value) for name, value in self._context.items())
            self._session = await self._subject.open(Case(1, (Turn(utterance, ()),), context_variables=variables))
        try:
            async with asyncio.timeout(limits.CASE_TIMEOUT_SECONDS):
                return await self._session.ask(utterance)
        except TimeoutError:
            raise SubjectError(f"the agent did not answer within {limits.CASE_TIMEOUT_SECONDS:g} seconds") from None

    async def _end(self) -> None:
        if self._session is not None:
            await self._session.close()
        await self._subject.close()


def _turn(utterance: str, generated: GeneratedData) -> dict[str, Yaml]:
    topic: dict[str, Yaml] = {"topic": generated.topic} if generated.topic else {}
    actions = None if generated.actions is None else [action.name for action in generated.actions]
    return {"input": utterance, **topic, **({} if actions is None else {"actions": actions})}
