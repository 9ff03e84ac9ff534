"""An agent that is a program: one JSON object a line on stdin and stdout (docs/subjects.md, "command")."""

from __future__ import annotations

import asyncio
import os
import shutil
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evalmeta.engine.answers import generated_data
from evalmeta.engine.subjects.messages import context_of, exchanged, history_of
from evalmeta.engine.subjects.processes import start_process
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError
from evalmeta.model.secrecy import child_environment

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.subject import Session, Subject
    from evalmeta.engine.subjects.processes import Process
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.jsonvalue import JsonObject, JsonValue
    from evalmeta.model.settings import CommandSubject

__all__ = ["bind_command"]


def bind_command(settings: CommandSubject, *, root: Path) -> Subject:
    """Makes a subject of a program that is started in `root`, once for each session at one time.

    It inherits this process's environment without Salesforce tokens; `settings.environment`
    is added. A program that dies while it is asked makes the case begin anew, with another process.

    Raises:
        SettingsError: there is no such program, or it may not be run.
    """
    environment = child_environment() | {"PYTHONUNBUFFERED": "1", **settings.environment}
    program = _program(settings.command[0], root, environment.get("PATH"))
    return _Command((program, *settings.command[1:]), root, environment)


class _Command:
    """A subject that keeps a process for every session that is open, and for later those that are free."""

    def __init__(self, command: tuple[str, ...], root: Path, environment: Mapping[str, str]) -> None:
        self._command = command
        self._root = root
        self._environment = environment
        self._all: set[Process] = set()
        self._free: list[Process] = []
        self._is_closed = False

    async def open(self, case: Case) -> Session:
        return _CommandSession(self, case)

    async def take(self) -> Process:
        """Gives a process that nobody else uses until it is given back."""
        while self._free:
            process = self._free.pop()
            if process.is_ready:
                return process
            await self._end(process)
        process = await start_process(self._command, folder=self._root, environment=self._environment)
        self._all.add(process)
        if self._is_closed:
            process.kill()
        return process

    async def give_back(self, process: Process) -> None:
        if process.is_ready:
            self._free.append(process)
        else:
            await self._end(process)

    async def close(self) -> None:
        self._is_closed = True
        try:
            await asyncio.gather(*map(self._end, list(self._all)))
        finally:
            for process in self._all:
                process.kill()

    async def _end(self, process: Process) -> None:
        await process.end()
        self._all.discard(process)


class _CommandSession:
    """One conversation; the program is told all that was said before, so that it need not remember."""

    def __init__(self, pool: _Command, case: Case) -> None:
        self._pool = pool
        self._process: Process | None = None
        self._id = uuid.uuid4().hex
        self._turn = 1
        self._history = history_of(case)
        self._context = context_of(case)

    async def ask(self, utterance: str) -> GeneratedData:
        if self._process is None:
            self._process = await self._pool.take()
        answer = await self._process.ask(self._question(utterance))
        _refuse_excuses(answer)
        generated = generated_data(answer)
        self._history += exchanged(utterance, generated)
        self._turn += 1
        return generated

    async def close(self) -> None:
        if self._process is not None:
            await self._pool.give_back(self._process)

    def _question(self, utterance: str) -> JsonObject:
        return {
            "session": self._id,
            "turn": self._turn,
            "utterance": utterance,
            "history": self._history,
            "context": self._context,
        }


def _refuse_excuses(answer: JsonValue) -> None:
    if not isinstance(answer, Mapping):
        return
    if answer.get("busy") is True:
        raise SubjectBusy("the program says that it is busy", after=_seconds(answer.get("after")))
    if answer.get("error") is not None:
        raise SubjectError(f"the program says: {answer['error']}")


def _seconds(after: JsonValue) -> float | None:
    if isinstance(after, bool) or not isinstance(after, int | float):
        return None
    return float(after) if after >= 0 else None


def _program(name: str, root: Path, path: str | None) -> str:
    """Finds a program: a path from the project's root, or a name on the path."""
    place = root.absolute() / name if os.path.dirname(name) else None  # noqa: PTH120 - "./run" is a path, "run" is none
    found = shutil.which(name, path=path) if place is None else shutil.which(place)
    if found is not None:
        return os.path.abspath(found)  # noqa: PTH100 - links stay as they are: Python finds its environment by them
    if place is not None and place.is_file():
        raise SettingsError(f"the subject's program {name} may not be run", actions=(f"Allow it: chmod +x {place}",))
    where = "on the path" if place is None else f"at {place}"
    raise SettingsError(
        f"the subject's program {name} is not there: nothing {where}",
        actions=("Install it, or correct the subject's command in evalmeta.toml.",),
    )
