from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

import pytest

from evalmeta import __version__
from evalmeta.api import files

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]


SPEC: Final = "subject: desk:answer\ntestCases:\n- input: Hi\n  contains: Paris\n"
AGENT: Final = """
import time
from pathlib import Path
here = Path(__file__).parent
def answer(text):
    (here / "asked").touch()
    for _ in range(2000):
        if (here / "go on").exists():
            return "Paris"
        time.sleep(0.01)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a test of an agent, which is the current one; logs of defects are written to it too."""
    (tmp_path / "a.yaml").write_text(SPEC)
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "evalmeta.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_the_version_is_printed(evalmeta: Program) -> None:
    assert evalmeta("--version").out == f"evalmeta {__version__}\n"


def test_an_unknown_option_is_a_usage_error(evalmeta: Program) -> None:
    done = evalmeta("deploy", "--manifst", "x")

    assert done.code == 2
    assert "--manifest" in done.err


def test_a_defect_is_logged_without_a_traceback(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(files, "validate", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    done = evalmeta("validate")

    [log] = tmp_path.glob("evalmeta-*.log")
    assert done.code == 1
    assert "Traceback" not in done.err
    assert str(log) in done.err
    assert "ZeroDivisionError: boom" in log.read_text()


@pytest.mark.parametrize("marker", ["sfdx-project.json", "package.xml"])
def test_checking_a_file_of_a_project_without_settings_loads_no_pydantic(tmp_path: Path, marker: str) -> None:
    tmp_path.joinpath(marker).write_text('{"packageDirectories": [{"path": "a"}]}')
    tmp_path.joinpath("A.aiEvaluationDefinition").write_text("<a/>")
    code = (
        "import sys\nfrom evalmeta.cli.main import main\n"
        "try: main(['validate', sys.argv[1]])\n"
        "except SystemExit as done: print(done.code, 'pydantic' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "A.aiEvaluationDefinition")]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.endswith("1 False\n")


def test_help_and_version_load_no_heavy_library() -> None:
    code = (
        "import sys\nfrom evalmeta.cli.main import cli\n"
        "heavy = {'lxml', 'xmlschema', 'httpx', 'starlette', 'pydantic', 'rich', 'jsonpath_ng', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize("variable", ["NO_COLOR", "FORCE_COLOR"])
def test_colour_follows_the_conventions(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "1")

    assert ("\x1b[" in evalmeta("validate").err) == (variable == "FORCE_COLOR")


@pytest.mark.slow
def test_a_full_disk_is_not_a_defect(program: list[str], copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*program, "validate"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error (EvalmetaError): the output cannot be written: No space left on device")


@pytest.mark.parametrize("call", [(), ("test",)])
def test_without_a_command_the_help_is_shown(evalmeta: Callable[..., Outcome], call: tuple[str, ...]) -> None:
    shown = evalmeta(*call)
    assert (shown.code, shown.err) == (2, "")
    assert shown.out.startswith("Usage: evalmeta ")


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("call", [["run", "a.yaml"], ["rule", "nothing"]])
def test_a_closed_stream_is_not_a_defect_and_no_file_takes_its_place(
    program: list[str], folder: Path, closed: str, call: list[str]
) -> None:
    (folder / "go on").touch()
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *program, *call], check=False, capture_output=True, timeout=120
    )
    assert done.returncode == (0 if call[0] == "run" else 2)
    assert [*folder.glob("evalmeta-*.log")] == []
    assert b"defect" not in done.stderr
    if call[0] == "run":
        assert (folder / ".evalmeta" / "org.sqlite3").read_bytes().startswith(b"SQLite format 3\0")


@pytest.mark.slow
@pytest.mark.parametrize("call", [["run", "a.yaml"], ["rule", "nothing"]])
def test_errors_and_remarks_that_cannot_be_written_are_not_a_defect(
    program: list[str], folder: Path, call: list[str]
) -> None:
    (folder / "go on").touch()
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*program, *call], check=False, stdout=subprocess.PIPE, stderr=full, timeout=120)
    assert done.returncode == (0 if call[0] == "run" else 2)
    assert [*folder.glob("evalmeta-*.log")] == []


@pytest.mark.slow
def test_a_terminal_that_goes_away_is_not_a_defect_and_the_results_stay(
    program: list[str], folder: Path, evalmeta: Program
) -> None:
    ours, theirs = pty.openpty()
    # As with nohup and disown, the program goes on without its terminal.
    command = ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *program, "run", "a.yaml"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as running:
        os.close(theirs)
        for _ in range(3000):
            if (folder / "asked").exists():
                break
            time.sleep(0.01)
        os.close(ours)
        (folder / "go on").touch()
        assert running.wait(60) in {0, 1}
    assert [*folder.glob("evalmeta-*.log")] == []
    assert "1 passed" in evalmeta("test", "results", "--use-most-recent").out


@pytest.mark.slow
@pytest.mark.parametrize("report", ["pipe.xml", "link.xml"])
def test_a_pipe_as_a_report_is_written_to_and_not_replaced(program: list[str], folder: Path, report: str) -> None:
    # Not /dev/null: root could replace it.
    (folder / "go on").touch()
    os.mkfifo(folder / "pipe.xml")
    (folder / "link.xml").symlink_to("pipe.xml")
    received: list[bytes] = []
    reader = Thread(target=lambda: received.append((folder / "pipe.xml").read_bytes()), daemon=True)
    reader.start()
    done = subprocess.run([*program, "run", "a.yaml", "--report", report], check=False, capture_output=True, timeout=60)
    reader.join(10)
    assert (done.returncode, b"defect" in done.stderr) == (0, False)
    assert stat.S_ISFIFO((folder / "pipe.xml").stat().st_mode)
    assert [content[:5] for content in received] == [b"<?xml"]
