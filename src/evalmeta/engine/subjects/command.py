"""An agent that is a program: one JSON object a line on stdin and stdout (docs/subjects.md, "command").

Programs that give one line of JSON for every line they get: started, asked, and none left behind.
"""

from __future__ import annotations

import asyncio
import codecs
import errno
import os
import shutil
import signal
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

import orjson

from evalmeta import limits
from evalmeta.engine.answers import generated_data
from evalmeta.engine.subjects.conversation import context_of, history_of, turn_messages
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.redaction import child_environment, redacted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.settings import CommandSubject


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
        self._history += turn_messages(utterance, generated)
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


_STDIN: Final = 0
_STDERR: Final = 2
# What is kept of stderr, and how much of it an error tells.
_KEPT_BYTES: Final = 16_384
_TOLD_LINES: Final = 10
_TOLD_CHARS: Final = 1_000
_SHOWN_CHARS: Final = 200
_PROTOCOL: Final = "stdout is for answers alone, one line of JSON each; let it print everything else to stderr"


async def start_process(command: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> Process:
    """Starts a program, without a shell and in a process group of its own.

    Raises:
        SubjectError: the system does not start it; says why.
    """
    loop = asyncio.get_running_loop()
    try:
        _, process = await loop.subprocess_exec(
            Process, *command, cwd=folder, env=dict(environment), start_new_session=True
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = "; a script begins with a line like #!/bin/sh" if getattr(error, "errno", 0) == errno.ENOEXEC else ""
        name = os.path.basename(command[0])  # noqa: PTH119 - where it is, is no matter of a report's
        raise SubjectError(f"the program {name} cannot be started: {reason}{hint}") from error
    return process


class Process(asyncio.SubprocessProtocol):
    """A running program; what it writes to stderr is read all the time, and its end is kept."""

    def __init__(self) -> None:
        self._transport: asyncio.SubprocessTransport
        self._gone = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[bytes] | None = None
        self._received = bytearray()
        self._stderr = b""
        self._is_over = False
        self._has_exited = False
        self._is_deaf_or_mute = False

    @property
    def is_ready(self) -> bool:
        """Says whether the program runs and has written nothing that it was not asked for."""
        return not (self._is_over or self._received)

    async def ask(self, message: JsonObject) -> JsonValue:
        """Writes one line and gives what the program answers in one line; whatever goes wrong ends the program.

        Raises:
            SubjectUnreachable: it ended, before or while it was asked; has the end of its stderr.
            SubjectError: it wrote no JSON, too much, or what it was not asked for.
        """
        try:
            return _parsed(await self._answered(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)))
        except BaseException:
            # What it is about to write answers no question of the next case.
            self.kill()
            raise

    async def end(self) -> None:
        """Closes stdin, gives the program some time, and kills what is left of it then, or when cancelled."""
        self._is_over = True
        self._stdin().close()
        try:
            await asyncio.wait({self._gone}, timeout=limits.PROGRAM_END_SECONDS)
        finally:
            self.kill()
        await asyncio.wait({self._gone}, timeout=limits.PROGRAM_END_SECONDS)

    def kill(self) -> None:
        """Ends the program and what it started, at once."""
        self._is_over = True
        if not self._has_exited:
            self._kill_group()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Is called by the event loop, as the following are."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keeps the end of stderr, and lines of stdout for who asked."""
        if fd == _STDERR:
            self._stderr = (self._stderr + data)[-_KEPT_BYTES:]
            return
        searched = len(self._received)
        self._received += data
        end = self._received.find(b"\n", searched)
        length = len(self._received) if end < 0 else end
        if length > limits.MAX_LINE_BYTES:
            self._fail(SubjectError(f"the program wrote a line of more than {limits.MAX_LINE_BYTES} bytes"))
            self.kill()
        elif end >= 0:
            self._deliver(end)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - the event loop's signature
        """Gives a program some time to end that reads or writes no more."""
        if fd != _STDERR:
            self._is_over = True
            asyncio.get_running_loop().call_later(limits.PROGRAM_END_SECONDS, self._give_up)

    def process_exited(self) -> None:
        """Ends what the program started and left behind; what cannot be ended may hold the pipes open."""
        self._kill_group()
        self._is_over = self._has_exited = True
        asyncio.get_running_loop().call_later(limits.PROGRAM_END_SECONDS, self._transport.close)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the event loop's signature
        """Tells that the program has ended and everything it wrote is here."""
        self._transport.close()
        self._gone.set_result(None)
        self._fail(SubjectUnreachable(self._obituary()))

    async def _answered(self, line: bytes) -> bytes:
        if self._received:
            raise SubjectError(
                f"the program wrote a line that it was not asked for: {_beginning(self._received)}; {_PROTOCOL}"
            )
        if self._gone.done():
            raise SubjectUnreachable(self._obituary())
        self._answer = asyncio.get_running_loop().create_future()
        self._stdin().write(line)
        return await self._answer

    def _deliver(self, end: int) -> None:
        if self._answer is None or self._answer.done():
            return
        line, rest = bytes(self._received[:end]), self._received[end + 1 :]
        self._received.clear()
        if rest:
            written = _beginning(line + b" " + rest)
            self._fail(SubjectError(f"the program wrote more than one line: {written}; {_PROTOCOL}"))
        else:
            self._answer.set_result(line)

    def _fail(self, error: SubjectError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def _give_up(self) -> None:
        self._is_deaf_or_mute = not self._has_exited
        self.kill()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), signal.SIGKILL)

    def _stdin(self) -> asyncio.WriteTransport:
        return cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN))

    def _obituary(self) -> str:
        said = _end_of(self._stderr)
        ending = f"the end of its stderr: {said}" if said else "it wrote nothing to stderr"
        half = f" in the middle of a line: {_beginning(self._received)}" if self._received else ""
        return f"the program {self._manner_of_death()}{half}; {ending}"

    def _manner_of_death(self) -> str:
        if self._is_deaf_or_mute:
            return "closed its stdin or stdout"
        code = self._transport.get_returncode() or 0
        if code < 0:
            return f"was ended by signal {-code} ({signal.strsignal(-code)})"
        return f"ended with exit code {code}"


def _parsed(line: bytes) -> JsonValue:
    try:
        # RFC 8259, 8.1: who reads JSON may ignore a byte order mark.
        value: JsonValue = orjson.loads(line.removeprefix(codecs.BOM_UTF8))
    except orjson.JSONDecodeError:
        raise SubjectError(
            f"the program wrote a line that is no JSON in UTF-8: {_beginning(line)}; {_PROTOCOL}"
        ) from None
    return value


def _beginning(line: bytes | bytearray) -> str:
    text = redacted(line[:_KEPT_BYTES].decode(errors="replace"))
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")


def _end_of(stderr: bytes) -> str:
    # A line whose beginning is lost might hold half of a secret, which no shape betrays.
    whole = stderr if len(stderr) < _KEPT_BYTES else stderr.partition(b"\n")[2]
    lines = redacted(whole.decode(errors="replace")).strip().splitlines()[-_TOLD_LINES:]
    return "\n".join(lines)[-_TOLD_CHARS:]
