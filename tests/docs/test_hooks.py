from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from evalmeta.cli.main import cli

HOOKS = Path(__file__).parent.parent.parent / ".pre-commit-hooks.yaml"
KEYS = {"id", "name", "description", "entry", "language", "files"}
DEFINITION = "force-app/main/default/aiEvaluationDefinitions/A.aiEvaluationDefinition"
MANIFESTS = ("package.xml", "manifest/package.xml", "a/destructiveChanges.xml", "destructiveChangesPost.xml")


def hooks() -> dict[str, dict[str, str]]:
    """Reads the file's simple YAML: a list of hooks, each with texts on one line."""
    found: list[dict[str, str]] = []
    for line in HOOKS.read_text().splitlines():
        if line.startswith("- "):
            found.append({})
        key, _, value = line[2:].partition(": ")
        found[-1][key] = value
    return {hook["id"]: hook for hook in found}


def test_every_hook_has_what_pre_commit_needs() -> None:
    assert list(hooks()) == ["evalmeta-validate", "evalmeta-format", "evalmeta-manifest"]
    assert all(set(hook) == KEYS and hook["language"] == "python" for hook in hooks().values())


@pytest.mark.parametrize("name", ["evalmeta-validate", "evalmeta-format", "evalmeta-manifest"])
def test_a_hook_runs_a_command_that_takes_files(name: str) -> None:
    program, word = hooks()[name]["entry"].split()
    command = cli.get_command(click.Context(cli), word)
    assert program == "evalmeta"
    assert [param.nargs for param in command.params if isinstance(param, click.Argument)] == [-1]


@pytest.mark.parametrize("name", ["evalmeta-validate", "evalmeta-format"])
def test_definitions_are_checked_in_both_formats(name: str) -> None:
    files = re.compile(hooks()[name]["files"])
    assert all(files.search(f"{DEFINITION}{end}") for end in ("", "-meta.xml"))
    assert not any(files.search(f"{DEFINITION}{end}") for end in ("-meta.xml.bak", "s", "/x"))


def test_both_files_of_a_bundle_are_checked_but_not_formatted() -> None:
    folder = "force-app/main/default/aiAuthoringBundles/Desk"
    found = {name: re.compile(hook["files"]) for name, hook in hooks().items()}
    for name in (f"{folder}/Desk.agent", f"{folder}/Desk.bundle-meta.xml"):
        assert found["evalmeta-validate"].search(name)
        assert not found["evalmeta-format"].search(name)
    assert not found["evalmeta-validate"].search("samples/Desk.agent")


def test_manifests_are_checked_by_their_names() -> None:
    files = re.compile(hooks()["evalmeta-manifest"]["files"])
    assert all(files.search(name) for name in MANIFESTS)
    assert not any(files.search(name) for name in ("mypackage.xml", "package.xml.example", "destructiveChangesX.xml"))
