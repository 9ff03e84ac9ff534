from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.command import CommandSubject
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.definition import ContextVariable, HistoryMessage
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.generated_data import Action, GeneratedData, Tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from evalmeta.engine.interfaces import Session, Subject

CASE = Case(1, (Turn("Hello"),), (HistoryMessage("user", "Hi", None, 0),), (ContextVariable("City", "Bonn"),))
LOOP = "import json, os, signal, subprocess, sys, time\nfor line in sys.stdin:\n    asked = json.loads(line)\n"


def subject(root: Path, body: str, *, before: str = LOOP, **environment: str) -> Subject:
    """Binds a program; the body is what it does with the line that it was `asked`."""
    text = before + "".join(f"    {line}\n" for line in body.splitlines())
    root.joinpath("program.py").write_text(text)
    command = (sys.executable, "program.py")
    return bind(CommandSubject(adapter="command", command=command, environment=environment), root=root)


def shell(root: Path, text: str) -> Subject:
    return bind(CommandSubject(adapter="command", command=("sh", "-c", text)), root=root)


def using(bound: Subject, use: Callable[[Session], Awaitable[object]]) -> object:
    async def main() -> object:
        session = await bound.open(CASE)
        try:
            return await use(session)
        finally:
            await session.close()
            await bound.close()

    return asyncio.run(main())


def ask(bound: Subject, *utterances: str) -> list[GeneratedData]:
    async def all_turns(session: Session) -> list[GeneratedData]:
        return [await session.ask(utterance) for utterance in utterances or ("Hello",)]

    return using(bound, all_turns)


def lives(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def gone(process_id: int) -> bool:
    while lives(process_id):
        await asyncio.sleep(0.01)
    return True


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Callable[[], list[int]]]:
    """Return the ids of the processes that wrote theirs to the file `pids`; at the end, check that all have exited."""

    def read() -> list[int]:
        file = tmp_path / "pids"
        return list(map(int, file.read_text().split())) if file.exists() else []

    async def none_is_left() -> None:
        for each in read():
            assert await asyncio.wait_for(gone(each), 60)

    yield read
    asyncio.run(none_is_left())


NOTE = "import os, sys\nprint(os.getpid(), file=open('pids', 'a'))\n" + LOOP


def test_a_program_answers_what_a_function_may_answer(tmp_path: Path) -> None:
    body = (
        "print(json.dumps({'outcome': 'Sent. ü', 'topic': 'Orders', 'actions': ['A', {'name': 'B', 'input': {'x': 1}}],"
        " 'latency_ms': 5, 'session_id': 's', 'tokens': {'input': 1, 'output': 2}, 'trace': [1],"
        " 'state': {'a': {}}, 'handoffs': ['O']}))"
    )
    actions = (Action("A"), Action("B", {"x": 1}))
    expected = GeneratedData(
        "Sent. ü", "Orders", actions, 5.0, "s", Tokens(1, 2), [1], state={"a": {}}, handoffs=("O",)
    )
    assert ask(subject(tmp_path, body)) == [expected]


def test_a_program_receives_the_turn_the_session_and_the_history(tmp_path: Path) -> None:
    body = "open('asked', 'a').write(line)\nprint(json.dumps(asked['utterance'].upper()))"
    assert [answer.outcome for answer in ask(subject(tmp_path, body), "a\nb", "ü")] == ["A\nB", "Ü"]
    first, second = map(json.loads, tmp_path.joinpath("asked").read_text().splitlines())
    hi = {"role": "user", "message": "Hi", "topic": None}
    session = first["session"]
    assert first == {
        "session": session, "turn": 1, "utterance": "a\nb", "history": [hi], "context": {"City": "Bonn"}
    }  # fmt: skip
    said = [hi, {"role": "user", "message": "a\nb", "topic": None}, {"role": "agent", "message": "A\nB", "topic": None}]
    assert (second["session"], second["turn"], second["history"]) == (session, 2, said)


def test_a_program_runs_in_the_project_with_its_environment_and_without_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SF_ACCESS_TOKEN", "00D000000000001!secret")
    body = "print(json.dumps(f\"{os.getcwd()} {os.environ['MODE']} {'SF_ACCESS_TOKEN' in os.environ}\"))"
    assert ask(subject(tmp_path, body, MODE="test"))[0].outcome == f"{tmp_path.resolve()} test False"


def test_a_program_serves_one_session_at_a_time_and_then_the_next(
    tmp_path: Path, pids: Callable[[], list[int]]
) -> None:
    bound = subject(tmp_path, "print(json.dumps(str(os.getpid())))", before=NOTE)

    async def main() -> list[list[str]]:
        rounds = []
        for _ in range(3):
            sessions = [await bound.open(CASE) for _ in range(3)]
            rounds.append([(await session.ask("x")).outcome for session in sessions])
            for session in sessions:
                await session.close()
        await bound.close()
        return rounds

    rounds = asyncio.run(main())
    assert {frozenset(turn) for turn in rounds} == {frozenset(map(str, pids()))}
    assert len(pids()) == 3


def test_a_session_that_asked_nothing_starts_no_program(tmp_path: Path, pids: Callable[[], list[int]]) -> None:
    async def nothing(session: Session) -> None:
        pass

    using(subject(tmp_path, "pass", before=NOTE), nothing)
    assert not pids()


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ('print(\'{"busy": true, "after": 2}\')', 2.0),
        ("print('{\"busy\": true}')", None),
        ('print(\'{"busy": true, "after": "soon"}\')', None),
        ('print(\'{"busy": true, "after": -1}\')', None),
    ],
)
def test_a_program_may_say_that_it_is_busy(tmp_path: Path, body: str, after: float | None) -> None:
    with pytest.raises(SubjectBusy) as caught:
        ask(subject(tmp_path, body))
    assert caught.value.after == after


def test_a_turn_is_repeated_with_the_same_program_after_it_was_busy(tmp_path: Path) -> None:
    answers = """answers = ['{"busy": true}', '"ready"']"""
    bound = subject(tmp_path, "print(answers.pop(0))", before=f"{answers}\n{LOOP}")

    async def twice(session: Session) -> GeneratedData:
        with pytest.raises(SubjectBusy):
            await session.ask("x")
        return await session.ask("x")

    assert using(bound, twice) == GeneratedData("ready")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ('print(\'{"error": "no such model"}\')', "the program returned an error: no such model"),
        ("print('Thinking ...')", "that is not valid JSON in UTF-8: 'Thinking ...'; stdout is only for answers"),
        ("print('x' * 300)", "is not valid JSON in UTF-8: 'x{200}…'"),
        ("print('Bearer abcdefghijklmnopqrstuvwxyz')", r"is not valid JSON in UTF-8: '\[secret\]'"),
        ("print()", "is not valid JSON in UTF-8: ''"),
        ("print('null')", r"returned nothing \(None\)"),
        ('print(\'{"topic": "Orders"}\')', "expected 'outcome'"),
        (r"""os.write(1, b'"one"\n"two"\n')""", "wrote more than one line: '.one. .two"),
    ],
)
def test_an_invalid_answer_is_a_subject_error(tmp_path: Path, body: str, complaint: str) -> None:
    with pytest.raises(SubjectError, match=complaint) as caught:
        ask(subject(tmp_path, body))
    assert type(caught.value) is SubjectError


@pytest.mark.parametrize("line", [r'"done"\r\n', r'\xef\xbb\xbf"done"\n'])
def test_lines_may_be_as_windows_writes_them(tmp_path: Path, line: str) -> None:
    assert ask(subject(tmp_path, f"os.write(1, b'{line}')"), "a", "b") == [GeneratedData("done")] * 2


@pytest.mark.parametrize("size", [limits.MAX_LINE_BYTES + 1, limits.MAX_LINE_BYTES - 1])
def test_a_line_has_a_limit(tmp_path: Path, size: int) -> None:
    with pytest.raises(
        SubjectError, match="more than 8000000 bytes" if size > limits.MAX_LINE_BYTES else "the maximum is"
    ):
        ask(subject(tmp_path, f"print('\"' + 'x' * {size - 2} + '\"')"))


def test_a_program_that_never_stops_writing_is_ended(tmp_path: Path, pids: Callable[[], list[int]]) -> None:
    bound = subject(tmp_path, "while True: sys.stdout.write('x' * 65536)", before=NOTE)
    with pytest.raises(SubjectError, match="more than"):
        ask(bound)
    assert len(pids()) == 1


def test_a_program_that_writes_before_it_is_asked_is_not_asked(tmp_path: Path) -> None:
    async def after_a_while(session: Session) -> None:
        await session.ask("x")
        while not session._process._received:  # noqa: SLF001 - the line comes when it comes
            await asyncio.sleep(0.01)
        await session.ask("x")

    body = "print('\"answer\"')\ntime.sleep(0.1)\nprint('debug')"
    with pytest.raises(SubjectError, match="before it was asked: 'debug"):
        using(subject(tmp_path, body), after_a_while)


def test_a_program_that_floods_stdout_before_it_is_asked_is_killed(
    tmp_path: Path, pids: Callable[[], list[int]]
) -> None:
    async def after_a_while(session: Session) -> None:
        await session.ask("x")
        (process_id,) = pids()
        await gone(process_id)
        await session.ask("x")

    body = "print('\"answer\"')\ntime.sleep(0.1)\nwhile True: sys.stdout.write('x' * 65536)"
    with pytest.raises(SubjectError, match="before it was asked"):
        using(subject(tmp_path, body, before=NOTE), after_a_while)


def test_stderr_does_not_block_and_is_not_an_answer(tmp_path: Path) -> None:
    body = "sys.stderr.write('x' * 5_000_000)\nprint('\"done\"')"
    assert ask(subject(tmp_path, body), "a", "b")[1].outcome == "done"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("sys.exit(3)", "the program exited with code 3; it wrote nothing to stderr$"),
        ("os.kill(os.getpid(), signal.SIGKILL)", r"ended by signal 9 \(Killed\); it wrote nothing"),
        ("1 / 0", r"exited with code 1; the end of its stderr: Traceback(.*\n)+ZeroDivisionError: division by zero$"),
        ("sys.exit('Bearer abcdefghijklmnopqrstuvwxyz')", r"stderr: \[secret\]$"),
        ("sys.exit('no line end ' * 9999)", "wrote nothing to stderr$"),
        ("sys.exit('x\\n' * 20_000 + 'last')", "stderr: (x\n){9}last$"),
        ("sys.exit('y' * 2_000)", "stderr: y{1000}$"),
        (
            "os.write(1, b'half a ')\nsys.exit(0)",
            "exited with code 0 in the middle of a line: 'half a '; it wrote nothing",
        ),
        pytest.param("os.close(1)\ntime.sleep(600)", "closed its stdin or stdout", marks=pytest.mark.slow),
        ("subprocess.Popen(['sleep', '600'])\nsys.exit(4)", "exited with code 4"),
        pytest.param(
            "subprocess.Popen(['sleep', '5'], start_new_session=True)\nsys.exit(5)",
            "exited with code 5",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_program_that_exits_is_unreachable_with_its_reason(tmp_path: Path, body: str, complaint: str) -> None:
    with pytest.raises(SubjectUnreachable, match=complaint):
        ask(subject(tmp_path, body))


@pytest.mark.parametrize(
    "answer", ["sys.exit(3)", "print('no JSON', flush=True)", 'print(\'{"error": "no"}\', flush=True)']
)
def test_every_error_of_a_program_has_the_end_of_its_stderr(tmp_path: Path, answer: str) -> None:
    body = f"print('the stock is empty', file=sys.stderr, flush=True)\ntime.sleep(0.1)\n{answer}"
    with pytest.raises(SubjectError) as caught:
        ask(subject(tmp_path, body))
    assert caught.value.traceback == "The end of the program's stderr:\nthe stock is empty"


def test_a_secret_of_the_environment_is_masked_in_what_a_program_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "wholly-ordinary-words")
    with pytest.raises(SubjectError, match=r"stderr: with \[secret\]$") as caught:
        ask(subject(tmp_path, "sys.exit('with ' + os.environ['SHOP_PASSWORD'])"))
    assert caught.value.traceback.endswith("with [secret]")


def test_a_program_killed_in_the_middle_is_replaced(tmp_path: Path, pids: Callable[[], list[int]]) -> None:
    body = "time.sleep(600) if asked['utterance'] == 'wait' else print(json.dumps(str(os.getpid())))"
    bound = subject(tmp_path, body, before=NOTE)

    async def main() -> str:
        session = await bound.open(CASE)
        first = int((await session.ask("x")).outcome)
        waiting = asyncio.create_task(session.ask("wait"))
        await asyncio.sleep(0)
        os.kill(first, 9)
        with pytest.raises(SubjectUnreachable, match="signal 9"):
            await waiting
        with pytest.raises(SubjectUnreachable, match="signal 9"):
            await session.ask("x")
        await session.close()
        session = await bound.open(CASE)
        second = (await session.ask("x")).outcome
        await session.close()
        await bound.close()
        return second

    assert asyncio.run(main()) == str(pids()[1])


def test_an_idle_program_that_exited_is_not_used(tmp_path: Path, pids: Callable[[], list[int]]) -> None:
    bound = subject(tmp_path, "print(json.dumps(str(os.getpid())))", before=NOTE)

    async def main() -> None:
        for _ in range(2):
            session = await bound.open(CASE)
            process_id = int((await session.ask("x")).outcome)
            await session.close()
            os.kill(process_id, 9)
            process = session._process  # noqa: SLF001 - the event loop reports its end later
            while process.is_ready:
                await asyncio.sleep(0.01)
        await bound.close()

    asyncio.run(main())
    assert len(pids()) == 2


def test_a_cancelled_request_kills_the_process(tmp_path: Path, pids: Callable[[], list[int]]) -> None:
    body = "child = subprocess.Popen(['sleep', '600'])\nprint(child.pid, file=open('pids', 'a'))\ntime.sleep(600)"
    bound = subject(tmp_path, body, before=NOTE)

    async def cancelled(session: Session) -> None:
        waiting = asyncio.create_task(session.ask("x"))
        while len(pids()) < 2:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.gather(*map(gone, pids()))

    using(bound, cancelled)


def test_a_program_may_finish_before_it_exits(tmp_path: Path) -> None:
    bound = subject(tmp_path, "print('\"x\"')\nsys.stdin.readline()\nopen('ended', 'w').close()")
    ask(bound)
    assert tmp_path.joinpath("ended").exists()


@pytest.mark.slow
def test_a_program_that_does_not_end_is_killed(tmp_path: Path, pids: Callable[[], list[int]]) -> None:
    ask(subject(tmp_path, "print('\"x\"')\ntime.sleep(600)", before=NOTE))
    assert len(pids()) == 1


def test_a_cancelled_close_kills_the_program(tmp_path: Path, pids: Callable[[], list[int]]) -> None:
    bound = subject(tmp_path, "print('\"x\"')\ntime.sleep(600)", before=NOTE)

    async def main() -> None:
        session = await bound.open(CASE)
        await session.ask("x")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(bound.close(), 0.05)
        assert await gone(*pids())
        await session.close()

    asyncio.run(main())


@pytest.mark.usefixtures("pids")
def test_no_process_is_started_after_the_end(tmp_path: Path) -> None:
    bound = subject(tmp_path, "print('\"x\"')", before=NOTE)

    async def main() -> None:
        await bound.close()
        session = await bound.open(CASE)
        with pytest.raises(SubjectUnreachable):
            await session.ask("x")
        await session.close()

    asyncio.run(main())


def test_shell_programs_answer_too(tmp_path: Path) -> None:
    answers = ask(shell(tmp_path, 'while read -r line; do echo \'{"outcome": "Hello."}\'; done'), "a", "b")
    assert [answer.outcome for answer in answers] == ["Hello.", "Hello."]


def test_a_program_in_the_project_is_found_from_its_root(tmp_path: Path) -> None:
    file = tmp_path / "bin" / "agent"
    file.parent.mkdir()
    file.write_text("#!/bin/sh\nread -r line; echo '\"Hello.\"'\n")
    file.chmod(0o755)
    bound = bind(CommandSubject(adapter="command", command=("bin/agent",)), root=tmp_path)
    assert ask(bound)[0].outcome == "Hello."


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("no-such-program", "no-such-program cannot be found on the PATH"),
        ("./missing", r"\./missing cannot be found at .*missing"),
        ("./plain.txt", r"\./plain\.txt is not executable"),
    ],
)
def test_a_program_that_cannot_be_run_is_a_settings_error(tmp_path: Path, name: str, complaint: str) -> None:
    tmp_path.joinpath("plain.txt").touch()
    with pytest.raises(SettingsError, match=complaint) as caught:
        bind(CommandSubject(adapter="command", command=(name,)), root=tmp_path)
    assert caught.value.actions


def test_a_program_that_the_system_does_not_start_is_a_subject_error(tmp_path: Path) -> None:
    tmp_path.joinpath("odd").write_bytes(b"\0\0\0\0")
    tmp_path.joinpath("odd").chmod(0o755)
    bound = bind(CommandSubject(adapter="command", command=("./odd",)), root=tmp_path)
    with pytest.raises(SubjectError, match="cannot be started: Exec format error"):
        ask(bound)


def test_an_invalid_argument_is_a_subject_error(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match="cannot be started: embedded null byte"):
        ask(bind(CommandSubject(adapter="command", command=("sh", "\0")), root=tmp_path))


@pytest.mark.parametrize(("language", "program"), [("python", sys.executable), ("sh", "sh")])
def test_the_documented_programs_answer(tmp_path: Path, language: str, program: str) -> None:
    if language == "sh" and not shutil.which("jq"):
        pytest.skip("the example needs jq")
    page = Path(__file__).parents[3].joinpath("docs", "subjects.md").read_text().partition("\n## command\n")[2]
    tmp_path.joinpath("agent").write_text(page.partition(f"```{language}\n")[2].partition("```")[0])
    bound = bind(CommandSubject(adapter="command", command=(program, "agent")), root=tmp_path)
    assert [each.outcome for each in ask(bound, 'a "b"', "c")] == ['You said: a "b"', "You said: c"]
