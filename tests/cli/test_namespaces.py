"""Full names with the namespace of the project: `ns__Name` means its file `Name`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.team import DEFINITION
from evalmeta.package.archive import read_zip

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]

TYPE = "AiEvaluationDefinition"
MANIFEST = (
    '<Package xmlns="http://soap.sforce.com/2006/04/metadata"><types><members>{}</members>'
    f"<name>{TYPE}</name></types><version>66.0</version></Package>"
)
SCRIPT = """\
start_agent Orders:
    actions:
        FindOrder:
            target: "flow://Find_Order"
subagent Returns:
    label: "Returns"
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin in a project with the namespace shop, which has an agent and a test of it."""
    monkeypatch.chdir(tmp_path)
    content = {"packageDirectories": [{"path": "force-app"}], "sourceApiVersion": "66.0", "namespace": "shop"}
    Path("sfdx-project.json").write_text(json.dumps(content))
    bundle = Path("force-app/aiAuthoringBundles/Desk")
    bundle.mkdir(parents=True)
    (bundle / "Desk.agent").write_text(SCRIPT)
    write("Greeting", "shop__Desk")


def write(name: str, agent: str = "Desk") -> None:
    content = DEFINITION.format(name="Greeting", utterance="Hi").replace("Desk", agent)
    Path(f"force-app/{name}.aiEvaluationDefinition-meta.xml").write_text(content)


def built(evalmeta: Program, *selection: str) -> list[str]:
    done = evalmeta("package", "build", *selection, "--zip-file-name", "p.zip")
    assert done.code == 0, done.err
    return [Path(name).stem for name in read_zip(Path("p.zip").read_bytes()) if name != "package.xml"]


def test_a_manifest_may_name_a_file_with_the_namespace(evalmeta: Program) -> None:
    write("Other")
    Path("package.xml").write_text(MANIFEST.format("shop__Greeting"))

    assert built(evalmeta, "--manifest", "package.xml") == ["Greeting"]
    assert evalmeta("validate", "--manifest", "package.xml").code == 0


def test_metadata_may_be_named_with_the_namespace(evalmeta: Program) -> None:
    write("Other")
    assert built(evalmeta, "--metadata", f"{TYPE}:shop__Greeting") == ["Greeting"]


@pytest.mark.parametrize("member", ["other__Greeting", "shop__Missing", "shop_Greeting"])
def test_another_name_is_missing(evalmeta: Program, member: str) -> None:
    Path("package.xml").write_text(MANIFEST.format(member))
    done = evalmeta("package", "build", "--manifest", "package.xml", "--zip-file-name", "p.zip")
    assert (done.code, f"the project has no {TYPE} '{member}'" in done.err) == (1, True)


def test_topics_of_the_agent_are_checked_although_the_test_names_it_with_the_namespace(evalmeta: Program) -> None:
    assert "topic-unknown" not in evalmeta("validate").err + evalmeta("validate").out
    path = Path("force-app/Greeting.aiEvaluationDefinition-meta.xml")
    path.write_text(path.read_text().replace(">Orders<", ">Order<"))

    done = evalmeta("validate")

    assert "[topic-unknown]" in done.out + done.err
