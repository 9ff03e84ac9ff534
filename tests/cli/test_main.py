from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta import __version__
from evalmeta.api import files

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]


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
