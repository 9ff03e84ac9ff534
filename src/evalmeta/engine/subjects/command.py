"""An agent that is a program: one JSON object per line on stdin and stdout (docs/subjects.md, "command")."""

from __future__ import annotations

import asyncio
import codecs
import errno
import os
import shlex
import shutil
import signal
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Generic, Literal, TypeVar, cast

import orjson
from pydantic import Field

from evalmeta import limits
from evalmeta.engine.answers import context_of, generated_data, history_of, turn_messages
from evalmeta.engine.interfaces import SimpleSubject
from evalmeta.engine.trace_context import TURN
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.json_value import JsonObject, JsonValue, read_json
from evalmeta.model.redaction import child_environment, hide_secrets, path_in_words, redacted
from evalmeta.model.settings import SubjectSettings

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.login import SignIn

_STDIN: Final = 0
_STDERR: Final = 2
_RUNNING: Final[set[Process]] = set()
_STDERR_BYTES: Final = 16_384
_STDERR_LINES: Final = 10
_STDERR_CHARS: Final = 1_000
_EXCERPT_CHARS: Final = 200
_STDERR_TITLE: Final = "The end of the program's stderr:\n"
_PROTOCOL: Final = "stdout is only for answers, one line of JSON each; print everything else to stderr"


class CommandSubject(SubjectSettings):
    """A program that reads JSON objects from stdin and writes JSON objects to stdout, one per line.

    Every worker has its own process, which is restarted if it dies. `model` is the language model whose price its
    answers have, unless they name one. With `traces`, evalmeta reads what answers leave out from the program's traces.
    """

    agent = "a program that reads and writes JSON lines"
    tracing = "received"

    adapter: Literal["command"]
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    environment: dict[str, str] = Field(default_factory=dict)
    model: str = ""
    traces: bool = False

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Return a subject for a program that runs in `root`, with one process for each open session.

        The program inherits this process's environment without Salesforce tokens, and `environment`. If it exits
        while it is asked, the case is retried with another process.
        """
        pool = ProcessPool(Process, self.command, root, self.environment)
        return SimpleSubject(lambda case: _CommandSession(pool, case), close=pool.close)

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the program with its arguments, which may be files."""
        words = [path_in_words(word, root) for word in self.command]
        return f"command {shlex.join(words)}", [root / word for word in words]


def _find_program(name: str, root: Path, path: str | None) -> str:
    """Return the absolute path of a program: a path from the project's root, or a name on the PATH."""
    file = root.absolute() / name if os.path.dirname(name) else None
    program = shutil.which(name, path=path) if file is None else shutil.which(file)
    if program is not None:
        return os.path.abspath(program)
    if file is not None and file.is_file():
        raise SettingsError(
            f"the subject's program {name} is not executable", actions=(f"Make it executable: chmod +x {file}",)
        )
    where = "on the PATH" if file is None else f"at {file}"
    raise SettingsError(
        f"the subject's program {name} cannot be found {where}",
        actions=("Install it, or correct the subject's command in evalmeta.toml.",),
    )


_AnyProcess = TypeVar("_AnyProcess", bound="Process")


class ProcessPool(Generic[_AnyProcess]):
    """The processes of a program: one for every open session, and idle ones for later sessions.

    The program runs in `root`, with this process's environment without Salesforce tokens, and with `more`. Raise
    SettingsError if it cannot be found.
    """

    def __init__(self, make: type[_AnyProcess], command: tuple[str, ...], root: Path, more: Mapping[str, str]) -> None:
        self._make = make
        self._environment = child_environment() | {"PYTHONUNBUFFERED": "1", **more}
        program = _find_program(command[0], root, self._environment.get("PATH"))
        self._command = (program, *command[1:])
        self._root = root
        self._all: set[_AnyProcess] = set()
        self._idle: list[_AnyProcess] = []
        self._is_closed = False

    async def acquire(self) -> _AnyProcess:
        """Return a process that no other session uses until it is released."""
        while self._idle:
            process = self._idle.pop()
            if process.is_ready:
                return process
            await self._end(process)
        process = await self._start()
        self._all.add(process)
        if self._is_closed:
            process.kill()
        return process

    async def _start(self) -> _AnyProcess:
        """Start the program without a shell, in its own process group."""
        loop, turn = asyncio.get_running_loop(), TURN.get()
        environment = {**self._environment, **(turn.environment if turn else {})}
        try:
            _, process = await loop.subprocess_exec(
                self._make, *self._command, cwd=self._root, env=environment, start_new_session=True
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            hint = "; begin a script with a line like #!/bin/sh" if getattr(error, "errno", 0) == errno.ENOEXEC else ""
            name = os.path.basename(self._command[0])
            raise SubjectError(f"the program {name} cannot be started: {reason}{hint}") from error
        return process

    async def release(self, process: _AnyProcess) -> None:
        """Keep a process for later sessions, or end it if it cannot be used any more."""
        if process.is_ready:
            self._idle.append(process)
        else:
            await self._end(process)

    async def close(self) -> None:
        """End all processes."""
        self._is_closed = True
        try:
            await asyncio.gather(*map(self._end, list(self._all)))
        finally:
            for process in self._all:
                process.abandon()

    async def _end(self, process: _AnyProcess) -> None:
        await process.end()
        self._all.discard(process)


class _CommandSession:
    """One conversation; every line to the program contains the whole history, so that it can be stateless."""

    def __init__(self, pool: ProcessPool[Process], case: Case) -> None:
        self._pool = pool
        self._process: Process | None = None
        self._id = uuid.uuid4().hex
        self._turn = 1
        self._history = history_of(case)
        self._context = context_of(case)

    async def ask(self, utterance: str) -> GeneratedData:
        if self._process is None:
            self._process = await self._pool.acquire()
        message: JsonObject = {
            "session": self._id,
            "turn": self._turn,
            "utterance": utterance,
            "history": self._history,
            "context": self._context,
            **({"traceparent": turn.traceparent} if (turn := TURN.get()) else {}),
        }
        try:
            answer = await self._process.ask(message)
            _raise_errors(answer)
            generated = generated_data(answer)
        except SubjectError as error:
            error.traceback = self._process.trace()
            raise
        self._history += turn_messages(utterance, generated)
        self._turn += 1
        return generated

    async def close(self) -> None:
        if self._process is not None:
            await self._pool.release(self._process)


def _raise_errors(answer: JsonValue) -> None:
    if not isinstance(answer, Mapping):
        return
    if answer.get("busy") is True:
        after = answer.get("after")
        if isinstance(after, bool) or not isinstance(after, int | float) or after < 0:
            after = None
        raise SubjectBusy("the program is busy", after=after)
    if answer.get("error") is not None:
        raise SubjectError(f"the program returned an error: {answer['error']}")


def kill_programs() -> None:
    """Kill all programs and the processes that they started; for a process that ends at once."""
    for process in tuple(_RUNNING):
        process.kill()


class Process(asyncio.SubprocessProtocol):
    """A running program that answers one line of JSON with another; its stderr is read all the time.

    Attributes:
        may_write_unasked: whether lines that nothing asked for are not an error; `_deliver` must sort them out.
    """

    may_write_unasked: ClassVar[bool] = False

    def __init__(self) -> None:
        self._transport: asyncio.SubprocessTransport
        self._gone = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[bytes] | None = None
        self._received = bytearray()
        self._stderr = b""
        # The last line of stdout that `_deliver` has ignored.
        self._ignored = b""
        self._is_over = False
        self._has_exited = False
        self._has_closed_pipe = False

    @property
    def is_ready(self) -> bool:
        """Whether the program runs and has not written anything unexpected."""
        return not (self._is_over or self._has_unasked)

    @property
    def _has_unasked(self) -> bool:
        return bool(self._received) and not self.may_write_unasked

    async def ask(self, message: JsonObject) -> JsonValue:
        """Write one line and return the JSON that the program answers in one line; any error kills the program."""
        try:
            line = await self._request(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))
            try:
                # RFC 8259, 8.1: parsers may ignore a byte order mark.
                answer = read_json(line.removeprefix(codecs.BOM_UTF8))
            except orjson.JSONDecodeError:
                raise SubjectError(
                    f"the program wrote a line that is not valid JSON in UTF-8: {_excerpt(line)}; {_PROTOCOL}"
                ) from None
        except BaseException:
            # A late answer must not become the answer of the next case.
            self.kill()
            raise
        return answer

    async def _request(self, line: bytes) -> bytes:
        if self._has_unasked:
            raise SubjectError(f"the program wrote a line before it was asked: {_excerpt(self._received)}; {_PROTOCOL}")
        if self._gone.done():
            raise SubjectUnreachable(self._exit_message(), is_unprocessed=True)
        self._answer = asyncio.get_running_loop().create_future()
        self._stdin().write(line)
        return await self._answer

    async def end(self) -> None:
        """Close stdin, and kill the program if it does not exit in time or if this call is cancelled."""
        self._is_over = True
        self._stdin().close()
        try:
            await asyncio.wait({self._gone}, timeout=limits.PROGRAM_END_SECONDS)
        finally:
            self.kill()
        await asyncio.wait({self._gone}, timeout=limits.PROGRAM_END_SECONDS)

    def kill(self) -> None:
        """Kill the program and every process that it started."""
        self._is_over = True
        if not self._has_exited:
            self._kill_group()

    def abandon(self) -> None:
        """Kill the program, and close the pipes that a process in a session of its own may still hold open."""
        self.kill()
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; the event loop calls this method and those below."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        _RUNNING.add(self)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep the end of stderr, and deliver lines of stdout."""
        if fd == _STDERR:
            self._stderr = (self._stderr + data)[-_STDERR_BYTES:]
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

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Kill a program that has closed stdin or stdout, unless it exits in time."""
        if fd != _STDERR:
            self._is_over = True
            asyncio.get_running_loop().call_later(limits.PROGRAM_END_SECONDS, self._kill_after_closed_pipe)

    def process_exited(self) -> None:
        """Kill the processes that the program left behind; survivors may still hold the pipes open."""
        _RUNNING.discard(self)
        self._kill_group()
        self._is_over = self._has_exited = True
        asyncio.get_running_loop().call_later(limits.PROGRAM_END_SECONDS, self._transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the exit, after all output has been received."""
        self._transport.close()
        self._gone.set_result(None)
        self._fail(SubjectUnreachable(self._exit_message()))

    def _deliver(self, end: int) -> None:
        if self._answer is None or self._answer.done():
            return
        line, rest = bytes(self._received[:end]), self._received[end + 1 :]
        self._received.clear()
        if rest:
            lines = _excerpt(line + b" " + rest)
            self._fail(SubjectError(f"the program wrote more than one line: {lines}; {_PROTOCOL}"))
        else:
            self._answer.set_result(line)

    def _fail(self, error: SubjectError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def _kill_after_closed_pipe(self) -> None:
        self._has_closed_pipe = not self._has_exited
        self.kill()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), signal.SIGKILL)

    def _stdin(self) -> asyncio.WriteTransport:
        return cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN))

    def _exit_message(self) -> str:
        code = self._transport.get_returncode() or 0
        if self._has_closed_pipe:
            event = "closed its stdin or stdout"
        elif code < 0:
            event = f"was ended by signal {-code} ({signal.strsignal(-code)})"
        else:
            event = f"exited with code {code}"
        half = f" in the middle of a line: {_excerpt(self._received)}" if self._received else ""
        lines = self._stderr_text().splitlines()[-_STDERR_LINES:]
        stderr = "\n".join(lines)[-_STDERR_CHARS:]
        ignored = f"; its last text on stdout is not a message: {_excerpt(self._ignored)}" if self._ignored else ""
        ending = f"the end of its stderr: {stderr}" if stderr else f"it wrote nothing to stderr{ignored}"
        return f"the program {event}{half}; {ending}"

    def _stderr_text(self) -> str:
        # Drop the first line if its beginning is lost: half of a secret cannot be recognised.
        whole = self._stderr if len(self._stderr) < _STDERR_BYTES else self._stderr.partition(b"\n")[2]
        return hide_secrets(whole.decode(errors="replace")).strip()

    def trace(self) -> str:
        """Return the end of stderr as the traceback of an error; empty if the program wrote nothing there."""
        text = self._stderr_text()[-(limits.MAX_TRACEBACK_CHARS - len(_STDERR_TITLE)) :]
        return f"{_STDERR_TITLE}{text}" if text else ""


def _excerpt(line: bytes | bytearray) -> str:
    text = redacted(line[:_STDERR_BYTES].decode(errors="replace"))
    return repr(text if len(text) <= _EXCERPT_CHARS else f"{text[:_EXCERPT_CHARS]}…")
