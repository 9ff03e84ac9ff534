from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from client.servers import replying_with
from engine.subjects.conversations import says
from evalmeta.model.registry import TYPES
from evalmeta.validation.rules import list_rules
from evalmeta.xmlio.structure import schema_dir

ROOT = Path(__file__).parent.parent


def test_a_wheel_holds_schemas_migrations_rule_pages_and_the_marker_of_types(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)

    [wheel] = tmp_path.glob("*.whl")
    names = set(ZipFile(wheel).namelist())
    assert {f"evalmeta/xsd/{path.name}" for path in (ROOT / "xsd").iterdir()} <= names
    assert {f"evalmeta/validation/pages/{rule.code}.md" for rule in list_rules()} <= names
    assert {"evalmeta/store/migrations/0001.sql", "evalmeta/py.typed"} <= names
    assert "evalmeta/formats/schemas/testspec.schema.json" in names
    assert "evalmeta/api/project_files/sample_agent.txt" in names
    assert {f"evalmeta/report/templates/run.{end}" for end in ("html.j2", "css", "js")} <= names
    viewer = ROOT / "src/evalmeta/viewer"
    files = [*viewer.glob("templates/*"), *viewer.glob("static/*")]
    assert {f"evalmeta/viewer/{path.relative_to(viewer).as_posix()}" for path in files} <= names


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _install(tmp_path_factory.mktemp("installed"))


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--agent", "shop:answer"), ("--dx",)])
def test_an_installed_wheel_starts_a_project_whose_tests_pass(
    program: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    _init_and_run(program, tmp_path, *options)


@pytest.mark.slow
def test_an_installed_wheel_starts_a_project_that_asks_an_endpoint(program: Path, tmp_path: Path) -> None:
    with replying_with(says({"choices": [{"message": {"content": "Hello."}}]})) as server:
        _init_and_run(program, tmp_path, "--url", f"{server.url}/v1", "--model", "desk-1")

    assert all(request.startswith(b"POST /v1/chat/completions ") for request in server.requests)
    assert len(server.requests) == 4


@pytest.mark.slow
def test_an_installed_wheel_adds_tests_to_an_existing_dx_project(program: Path, tmp_path: Path) -> None:
    (tmp_path / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "force-app", "default": true}]}')
    bot = tmp_path / "force-app/main/default/bots/Order_Desk/Order_Desk.bot-meta.xml"
    bot.parent.mkdir(parents=True)
    bot.write_text('<Bot xmlns="http://soap.sforce.com/2006/04/metadata"><label>Order Desk</label></Bot>')

    spec = "subjectName: Order_Desk\nsubjectType: AGENT\nname: Orders\ntestCases:\n"
    cases = "".join(f"- input: {text}\n  contains: Hello\n" for text in ("Hi", "Good morning", "Hey"))
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/Orders.yaml").write_text(spec + cases)
    (tmp_path / "agent_doubles.py").write_text("def Order_Desk(utterance):\n    return 'Hello.'\n")

    _init_and_run(program, tmp_path, "--dx")

    assert "Order_Desk" in (tmp_path / "evalmeta.toml").read_text()
    assert "<label>Order Desk</label>" in bot.read_text()


def _init_and_run(program: Path, folder: Path, *options: str) -> None:
    """Initialize a folder with an empty home, run the command that init names, and check that its tests pass."""
    environment = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"]}

    def run(*words: str) -> str:
        where = {"cwd": folder, "env": environment}
        done = subprocess.run([program, *words], **where, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    command, *_ = run("init", *options).partition("Next:\n")[2].splitlines()
    assert "3 passed, 0 failed, 0 errors, 0 undecided" in run(*command.split()[1:])
    run("view", "--export", "pages")
    assert "<h1>There is nothing to compare with</h1>" in (folder / "pages/index.html").read_text()
    assert (folder / "pages/data.js").exists()


def _install(folder: Path) -> Path:
    """Install the wheel in an environment of its own, with the dependencies of this one, and return its program."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True, capture_output=True)
    python = folder / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--no-index", "--no-deps", wheel], check=True, capture_output=True)
    [packages] = (folder / "env").glob("lib/*/site-packages")
    # Folders in a .pth file are searched, but their own .pth files, such as that of this checkout, are not read.
    (packages / "dependencies.pth").write_text("\n".join(each for each in sys.path if each.endswith("-packages")))
    return python.with_name("evalmeta")


def test_a_checkout_finds_its_schemas() -> None:
    assert {path.name for path in schema_dir().iterdir()} == {*(row.xsd for row in TYPES), "package.xsd"}
