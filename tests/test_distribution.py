"""What is published: the sdist, the wheel, the constraints and the workflow."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parent.parent
DATA = (
    *(".css", ".html.j2", ".js", ".json", ".md", ".py", ".sql", ".svg", ".toml", ".txt", ".typed", ".xsd", ".yaml"),
    ".yml",
)
TOP = {
    *(".ci", ".dockerignore", ".github", ".gitignore", ".pre-commit-hooks.yaml", "ARCHITECTURE.md", "CHANGELOG.md"),
    *(
        "CONTRIBUTING.md",
        "Dockerfile",
        "LICENSE",
        "Makefile",
        "PKG-INFO",
        "README.md",
        "SECURITY.md",
        "action",
        "action.yml",
        "benchmarks",
    ),
    *("constraints.txt", "docs", "metadata-samples", "package.xml.example", "pyproject.toml", "src", "tests", "xsd"),
    "zensical.toml",
}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def source(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist."""
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    [root] = folder.iterdir()
    return root


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the sdist."""
    return build("wheel", source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel, and with the dependencies that are installed here."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    run(sys.executable, "-m", "pip", "--python", folder, "install", "--quiet", "--no-index", "--no-deps", wheel)
    [packages] = folder.glob("lib/python*/site-packages")
    elsewhere = {str(Path(each)) for each in sys.path if each.endswith("site-packages")}
    (packages / "dependencies.pth").write_text("\n".join(sorted(elsewhere)))
    return folder / "bin" / "python"


def build(target: str, root: Path, folder: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", folder, cwd=root)
    [built] = folder.iterdir()
    return built


def run(*command: object, cwd: Path = ROOT, **variables: str) -> str:
    environment = os.environ | variables
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pyproject() -> Mapping[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.slow
def test_twine_accepts_sdist_and_wheel(sdist: Path, wheel: Path) -> None:
    assert "FAILED" not in run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)


@pytest.mark.slow
def test_a_wheel_holds_only_the_package(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    package = [name for name in names if ".dist-info/" not in name]

    assert [name for name in package if not name.startswith("evalmeta/") or not name.endswith(DATA)] == []
    assert "evalmeta/py.typed" in package
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_an_sdist_holds_what_its_tests_need_and_nothing_else(source: Path) -> None:
    assert {path.name for path in source.iterdir()} <= TOP
    assert not [
        path for path in source.rglob("*") if path.name in {"__pycache__", ".venv", ".evalmeta", "node_modules"}
    ]
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    run(*command, "--collect-only", "tests", cwd=source, PYTHONPATH=str(source / "src"))
    parts = ("tests/docs", "tests/test_architecture.py", "tests/test_distribution.py")
    run(*command, *parts, cwd=source, PYTHONPATH=str(source / "src"))


@pytest.mark.slow
def test_an_installed_wheel_works_where_nothing_of_the_checkout_is(installed: Path, tmp_path: Path) -> None:
    where = run(installed, "-I", "-c", "import evalmeta; print(evalmeta.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent.parent)

    program = installed.parent / "evalmeta"
    assert run(program, "--version", cwd=tmp_path).startswith("evalmeta")
    samples = ROOT / "metadata-samples" / "aiEvaluationDefinitions"
    run(program, "validate", *sorted(samples.glob("*.aiEvaluationDefinition")), cwd=tmp_path)


def test_every_extra_is_part_of_all() -> None:
    extras = pyproject()["optional-dependencies"]
    [everything] = extras["all"]
    assert everything == f"evalmeta[{','.join(sorted(extras.keys() - {'all'}))}]"


def test_constraints_pin_every_dependency_with_hashes() -> None:
    text = (ROOT / "constraints.txt").read_text()
    pinned = {name.lower() for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    extras = pyproject()["optional-dependencies"]
    required = [*pyproject()["dependencies"], *(each for name, own in extras.items() if name != "all" for each in own)]

    assert {re.split(r"[\[<>=]", each)[0].lower() for each in required} <= pinned
    assert all("--hash=sha256:" in block for block in re.split(r"\n(?=[\w.-]+==)", text)[1:])
    assert "://" not in text


def test_the_release_workflow_gives_each_job_only_the_rights_that_it_needs() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())

    assert workflow["permissions"] == {}
    assert {name: job["permissions"] for name, job in workflow["jobs"].items()} == {
        "build": {"contents": "read"},
        "install": {},
        "attest": {"attestations": "write", "id-token": "write"},
        "pypi": {"id-token": "write"},
        "github": {"contents": "write"},
    }
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text()


def test_the_release_workflow_pins_actions_and_calls_targets_that_exist() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each) for each in re.findall(r"uses: (\S+)", text))
    assert {word for line in re.findall(r"run: make (.*)", text) for word in line.split() if "=" not in word} <= targets


def test_the_image_runs_without_root_and_installs_only_known_files() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert dockerfile.index("\nUSER evalmeta\n") < dockerfile.index("ENTRYPOINT")
    assert "--require-hashes" in dockerfile
    assert "\nWORKDIR /project\n" in dockerfile
    assert "EVALMETA_SAFE_FOLDERS=/project\n" in dockerfile
    assert (ROOT / ".dockerignore").read_text().splitlines() == ["*", "!constraints.txt", "!dist/*.whl"]
