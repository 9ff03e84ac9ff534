"""What an org receives of files with replacements: from the sf CLI and from evalmeta."""

from __future__ import annotations

import json
import random
import subprocess
from typing import TYPE_CHECKING

import pytest

from clients_elsewhere.node import CLIENTS, find_node
from evalmeta.api.packages import build_package
from evalmeta.package.archive import read_zip
from evalmeta.package.javascript_patterns import compile_glob, compile_regex, replace_matches
from evalmeta.package.project import find_project
from evalmeta.package.selection import Selection
from org.parts import KIND, definition, xml_of

if TYPE_CHECKING:
    from clients_elsewhere.workspace import Workspace

AGENT = {"AGENT": "Desk$&'s $1 $$", "GO": "true"}
ENV_ROW = {"glob": "force-app/**/*.xml", "stringToReplace": "__AGENT__", "replaceWithEnv": "AGENT"}
ROWS = {
    "a text": ENV_ROW,
    "a regular expression": {
        **ENV_ROW, "stringToReplace": None, "regexToReplace": r"__(\w+)__(?=\s*<)", "replaceWithEnv": "AGENT",
    },
    "a file": {**ENV_ROW, "replaceWithEnv": None, "replaceWithFile": "values/agent.txt"},
    "a file name": {**ENV_ROW, "glob": None, "filename": ".aiEvaluationDefinition-meta.xml"},
    "another file name": {**ENV_ROW, "glob": None, "filename": "Other.aiEvaluationDefinition-meta.xml"},
    "a condition": {**ENV_ROW, "replaceWhenEnv": [{"env": "GO", "value": True}]},
    "another condition": {**ENV_ROW, "replaceWhenEnv": [{"env": "GO", "value": "no"}]},
    "a variable that may be unset": {**ENV_ROW, "replaceWithEnv": "UNSET", "allowUnsetEnvVariable": True},
}  # fmt: skip


def declare(workspace: Workspace, *rows: dict[str, object]) -> None:
    path = workspace.folder / "sfdx-project.json"
    given = [{key: value for key, value in row.items() if value is not None} for row in rows]
    path.write_text(json.dumps({**json.loads(path.read_text()), "replacements": given}))
    (workspace.folder / "values").mkdir(exist_ok=True)
    (workspace.folder / "values/agent.txt").write_text("\n Desk from a file \n")


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_an_org_receives_the_same_bytes_from_sf_and_from_evalmeta(
    workspace: Workspace, row: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(workspace, row)
    name = workspace.write("Replaced", definition("Replaced").replace(b"Hi", b"Hi __AGENT__ __OTHER__"))
    path = workspace.path(name)
    path.write_bytes(path.read_bytes().replace(b"Replaced 1<", b"__AGENT__ __OTHER__ <"))
    for key, value in AGENT.items():
        monkeypatch.setenv(key, value)
    monkeypatch.chdir(workspace.folder)
    build_package(find_project(workspace.folder), Selection(), workspace.folder / "ours.zip")
    ours = read_zip((workspace.folder / "ours.zip").read_bytes())[xml_of(name)]

    done = workspace.sf("project deploy start", "--json", "-m", f"{KIND.name}:{name}", env=AGENT)
    assert done.code == 0, done
    taken = workspace.sf("project retrieve start", "--json", "-m", f"{KIND.name}:{name}", "-t", "theirs", "-z")

    assert taken.code == 0, taken
    assert next((workspace.folder / "theirs").rglob(f"{name}.*")).read_bytes() == ours


def test_both_refuse_a_variable_that_is_not_set(workspace: Workspace) -> None:
    declare(workspace, {**ENV_ROW, "replaceWithEnv": "UNSET"})
    name = workspace.write("Refused")

    done = workspace.sf("project deploy start", "--json", "-m", f"{KIND.name}:{name}")

    problem = find_project(workspace.folder).replacements.problem_of(workspace.path(name))
    assert (done.code, "UNSET" in done.reply.message) == (10, True), done
    assert problem
    assert "UNSET" in problem.message


GLOB_PARTS = ["a", "b", ".", "*", "**", "?", "/", "[ab]", "[!a]", "[^a.]", "{a,b}", "{a,b/c}", "x", "-meta", "\\*"]
GLOB_PARTS += ["{", "}", ",", "{a,{b,x}}"]
PATH_PARTS = ["a", "b", ".", "/", "x", "-meta", "*", "c", "^", "ab", "{a}"]
REGEX_PARTS = ["a", "b", ".", r"\d", r"\w", r"\s", r"\S", r"[\s\S]", "[^a]", "[]", "[^]", "(a|b)", "(?:ab)", "(?<n>a)"]
REGEX_PARTS += ["*", "+", "?", "*?", "{2}", "{,2}", "{{", "}}", "$", "^", r"\b", r"\.", r"\-", r"\_", "[[a]", "[a&&b]"]
REGEX_PARTS += [r"[\w-]", r"\/", "|", r"\0", "(?=b)", "(?!a)", "\n", r"\n", "++", r"\q", "(b)?"]
TEXT_PARTS = [
    "a",
    "b",
    "aa",
    "1",
    "_",
    "\n",
    "\r",
    " ",
    "\xa0",
    "{{",
    "}}",
    "-",
    ".",
    "é",
    "\u2028",
    "[",
    "&",
    "\0",
    "q",
]
TEMPLATE_PARTS = ["x", "$$", "$&", "$1", "$10", "$2", "$<n>", "$'", "$`", "$", "$<m>", "$0", "$01", "$00"]
PROGRAM = """
const {minimatch} = require("@salesforce/source-deploy-retrieve/node_modules/minimatch");
const rows = JSON.parse(require("fs").readFileSync(0, "utf8"));
const result = ({glob, path, regex, template, text}) => {
  try { return glob ? minimatch(path, "**/" + glob) : text.replace(new RegExp(regex, "g"), template); }
  catch (error) { return null; }
};
console.log(JSON.stringify(rows.map(result)));
"""


def in_javascript(rows: list[dict[str, str]]) -> list[object]:
    done = subprocess.run(
        [find_node(), "-e", PROGRAM], cwd=CLIENTS, input=json.dumps(rows), capture_output=True, text=True, check=True
    )
    results: list[object] = json.loads(done.stdout)
    return results


def in_python(row: dict[str, str]) -> object:
    try:
        if "glob" in row:
            return compile_glob(row["glob"]).match(row["path"]) is not None
        return replace_matches(compile_regex(row["regex"]), row["template"], row["text"])
    except ValueError:
        return None


def test_random_patterns_match_as_in_javascript_or_are_refused() -> None:
    chance = random.Random(1)  # noqa: S311 - patterns, not secrets

    def joined(parts: list[str], most: int) -> str:
        return "".join(chance.choices(parts, k=chance.randint(1, most)))

    rows = [{"glob": joined(GLOB_PARTS, 6), "path": "/w/" + joined(PATH_PARTS, 7)} for _ in range(3000)]
    rows = [row for row in rows if "//" not in row["path"] and not row["path"].endswith("/")]
    rows += [
        {"regex": joined(REGEX_PARTS, 5), "template": joined(TEMPLATE_PARTS, 3), "text": joined(TEXT_PARTS, 8)}
        for _ in range(6000)
    ]
    pairs = [(row, in_python(row), theirs) for row, theirs in zip(rows, in_javascript(rows), strict=True)]

    assert [pair for pair in pairs if pair[1] is not None and pair[1] != pair[2]] == []
    assert sum(ours is None and theirs is not None for _, ours, theirs in pairs) < len(pairs) / 10
