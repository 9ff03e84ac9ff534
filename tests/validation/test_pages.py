"""Every rule's page says what the rule does: its snippets are put into files and checked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from evalmeta.api.files import validate
from evalmeta.api.selections import resolve, validate_selection
from evalmeta.errors import InvalidMetadata, NotFound
from evalmeta.model.registry import AUTHORING_BUNDLE, SCORER_DEFINITION, TYPES
from evalmeta.package.project import find_project
from evalmeta.package.selection import Selection
from evalmeta.validation import rules
from evalmeta.validation.rules import find_rule, list_rules, read_page
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.reader import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.problem import Problem
    from evalmeta.validation.rule import Rule

NAME = "<name>Loans</name>"
SUBJECT = "<subjectName>Library_Desk_Agent</subjectName><subjectType>AGENT</subjectType>"
INPUTS = "<inputs><utterance>How long may I keep it?</utterance></inputs>"
EXPECTATION = "<expectation><name>topic_sequence_match</name><expectedValue>Loans</expectedValue></expectation>"
CRITERION = "<expectation><name>string_comparison</name>{}</expectation>".format(
    "".join(
        f"<parameter><name>{name}</name><value>{value}</value></parameter>"
        for name, value in {"operator": "equals", "actual": "a", "expected": "a"}.items()
    )
)
COHERENCE = "<name>coherence</name>"
SCORED = f"<testCase><number>1</number>{INPUTS}<scorer>{COHERENCE}</scorer></testCase>"
PROMPT = "<subjectName>Loan_Summary</subjectName><subjectType>PROMPT</subjectType>"
PROMPT_INPUTS = "<inputs><promptInput><referenceName>r</referenceName><value>v</value></promptInput></inputs>"
TESTING = f'<AiTestingDefinition xmlns="{NAMESPACE}">{{}}</AiTestingDefinition>'
# What a snippet of each kind is put into.
AROUND = {"file": "{}", "definition": f'<AiEvaluationDefinition xmlns="{NAMESPACE}">{{}}</AiEvaluationDefinition>'}
AROUND["case"] = AROUND["definition"].format(f"{NAME}{SUBJECT}{{}}")
AROUND["inputs"] = AROUND["case"].format(f"<testCase>{{}}{EXPECTATION}</testCase>")
AROUND["expectation"] = AROUND["case"].format(f"<testCase>{INPUTS}{{}}</testCase>")
for comparison in ("string_comparison", "numeric_comparison"):
    AROUND[comparison] = AROUND["expectation"].format(f"<expectation><name>{comparison}</name>{{}}</expectation>")
AROUND |= {
    "testing": TESTING,
    "described": TESTING.format(f"{NAME}{SUBJECT}{{}}{SCORED}"),
    "testing-case": TESTING.format(f"{NAME}{SUBJECT}{{}}"),
    "scorer": TESTING.format(f"{NAME}{SUBJECT}<testCase><number>1</number>{INPUTS}{{}}</testCase>"),
    "prompt": TESTING.format(f"{NAME}{PROMPT}<testCase><number>1</number>{{}}<scorer>{COHERENCE}</scorer></testCase>"),
    "prompt-scorer": TESTING.format(f"{NAME}{PROMPT}<testCase><number>1</number>{PROMPT_INPUTS}{{}}</testCase>"),
}
AGENT_SCORER = (
    f'<AiAgentScorerDefinition xmlns="{NAMESPACE}"><dataType>LightningType</dataType><inputScope>Session</inputScope>'
    "{}</AiAgentScorerDefinition>"
)
AROUND["scorer-version"] = AGENT_SCORER.format("<lightningType>lightning__textType</lightningType>{}")
AROUND["scorer-type"] = AGENT_SCORER.format(
    "{}<scorerVersion><label>Polite</label><status>Draft</status><versionNumber>1</versionNumber>"
    "<engine><engineType>Manual</engineType></engine></scorerVersion>"
)
MANIFEST = f'<Package xmlns="{NAMESPACE}">{{}}</Package>'
# Too large to print on a page, or said by an org.
ONLY_TOLD = {"test-cases-too-many", "xml-too-large", "xml-too-deep", "full-name-unsafe", "refused", "conflict"}
ONLY_TOLD |= {"scorer-name-too-long", "review-pending"}

FOLDER = Path(rules.__file__).parent / "pages"
# A rule without a page has an empty one here; `test_rules.py` says so.
PAGES = {entry.code: read_page(entry) if (FOLDER / f"{entry.code}.md").exists() else "" for entry in list_rules()}
ENTRIES = pytest.mark.parametrize("entry", list_rules(), ids=lambda entry: entry.code)


class Snippet(NamedTuple):
    is_right: bool
    kind: str
    text: str


def snippets(page: str) -> list[Snippet]:
    found = re.findall(r"^\*\*(Wrong|Right)\*\*\n```(?:xml|text) ?(\S*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [Snippet(label == "Right", kind, text) for label, kind, text in found]


SNIPPETS = [
    pytest.param(code, snippet, id=f"{code}-{'right' if snippet.is_right else 'wrong'}")
    for code, page in PAGES.items()
    for snippet in snippets(page)
    if snippet.kind
]


def problems(snippet: Snippet, root: Path) -> Sequence[Problem]:
    if snippet.kind in AROUND:
        text = AROUND[snippet.kind].format(snippet.text)
        kind = next(row for row in TYPES if f"<{row.name} " in text or row == SCORER_DEFINITION)
        return validate_component(kind, text.encode(), label="d", full_name="Loans")
    try:
        return CHECKS[snippet.kind](snippet.text, root)
    except InvalidMetadata as error:
        return error.problems


def check_manifest(text: str, root: Path) -> Sequence[Problem]:
    write_definition(root / "aiEvaluationDefinitions/Loans.aiEvaluationDefinition", body=CRITERION)
    write_definition(root / "aiEvaluationDefinitions/Renewals.aiEvaluationDefinition", name="<name>Renewals</name>")
    manifest = Selection(manifest=root / "package.xml")
    (root / "package.xml").write_text(MANIFEST.format(text))
    resolve(find_project(root), manifest)
    return validate_selection(manifest, start=root).problems


def check_destructive(text: str, root: Path) -> Sequence[Problem]:
    path = root / "destructiveChanges.xml"
    path.write_text(MANIFEST.format(text))
    return validate([path]).problems


def check_project(text: str, root: Path) -> Sequence[Problem]:
    for line in text.splitlines():
        path, _, name = line.partition(" ")
        if path.startswith(AUTHORING_BUNDLE.directory):
            write_bundle_file(root / path)
        else:
            write_definition(root / path, name=name.strip() or NAME)
    return validate(start=root).problems


def check_with_agent(text: str, root: Path) -> Sequence[Problem]:
    (root / "Library_Desk_Agent.bot").write_text(
        f'<Bot xmlns="{NAMESPACE}"><contextVariables><developerName>RoutableId</developerName></contextVariables></Bot>'
    )
    path = root / "aiEvaluationDefinitions/Loans.aiEvaluationDefinition"
    path.parent.mkdir()
    path.write_text(AROUND["inputs"].format(text))
    return validate([path]).problems


def check_with_script(text: str, root: Path) -> Sequence[Problem]:
    return check_beside_script(AROUND["expectation"].format(text), root)


def check_inputs(text: str, root: Path) -> Sequence[Problem]:
    return check_beside_script(AROUND["inputs"].format(text), root)


def check_subject(text: str, root: Path) -> Sequence[Problem]:
    subject = f"{text.strip()}<subjectType>AGENT</subjectType>"
    case = f"<testCase>{INPUTS}{EXPECTATION}</testCase>"
    return check_beside_script(AROUND["definition"].format(f"{NAME}{subject}{case}"), root)


def check_beside_script(definition: str, root: Path) -> Sequence[Problem]:
    actions = '        FindLoans:\n            target: "flow://Find_Loans"\n'
    variables = "variables:\n    reader_number: linked string\n"
    script = f'{variables}start_agent Loans:\n    actions:\n{actions}subagent Renewals:\n    label: "Renewals"\n'
    (root / "Library_Desk_Agent.agent").write_text(script)
    path = root / "aiEvaluationDefinitions/Loans.aiEvaluationDefinition"
    path.parent.mkdir()
    path.write_text(definition)
    return validate([path]).problems


def check_agent_script(text: str, root: Path) -> Sequence[Problem]:
    path = root / "aiAuthoringBundles/Library_Desk/Library_Desk.agent"
    write_bundle_file(path)
    write_bundle_file(path.with_name("Library_Desk.bundle-meta.xml"))
    path.write_text(text)
    return validate([root]).problems


def check_forceignore(text: str, root: Path) -> Sequence[Problem]:
    (root / "force-app").mkdir()
    (root / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "force-app"}]}')
    (root / ".forceignore").write_text(text)
    return validate(start=root).problems


def write_bundle_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = f'<AiAuthoringBundle xmlns="{NAMESPACE}"><bundleType>AGENT</bundleType></AiAuthoringBundle>'
    path.write_text(metadata if path.suffix == ".xml" else 'start_agent desk:\n    description: "Answers"\n')


def write_definition(path: Path, *, name: str = NAME, body: str = EXPECTATION) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(AROUND["definition"].format(f"{name}{SUBJECT}<testCase>{INPUTS}{body}</testCase>"))


def check_project_file(text: str, root: Path) -> Sequence[Problem]:
    (root / "sfdx-project.json").write_text(text)
    (root / "force-app").mkdir()
    path = root / "force-app/Loans.aiTestingDefinition-meta.xml"
    path.write_text(TESTING.format(f"{NAME}{SUBJECT}{SCORED}"))
    return validate([path]).problems


CHECKS = {
    "sfdx-project.json": check_project_file,
    "manifest": check_manifest,
    "destructive": check_destructive,
    "project": check_project,
    "inputs-of-agent": check_with_agent,
    "expectation-of-agent": check_with_script,
    "inputs-of-script": check_inputs,
    "subject-of-project": check_subject,
    "script": check_agent_script,
    ".forceignore": check_forceignore,
}


@pytest.mark.parametrize(("code", "snippet"), SNIPPETS)
def test_what_a_page_calls_wrong_is_refused_and_what_it_calls_right_is_not(
    code: str, snippet: Snippet, tmp_path: Path
) -> None:
    found = problems(snippet, tmp_path)
    if snippet.is_right:
        assert [str(each) for each in found if each.is_error or each.code == code] == []
    else:
        assert code in {each.code for each in found}


@ENTRIES
def test_a_page_shows_wrong_and_right(entry: Rule) -> None:
    shown = snippets(PAGES[entry.code])
    assert [snippet.is_right for snippet in shown] == [False, True]
    assert all(bool(snippet.kind) is (entry.code not in ONLY_TOLD) for snippet in shown)


@ENTRIES
def test_a_page_begins_with_code_demand_and_severities_of_the_table(entry: Rule) -> None:
    severity = f"Severity: {entry.orgs} under `orgs`, {entry.documented} under `documented`."
    assert PAGES[entry.code].startswith(f"# {entry.code}\n\n{entry.demand}\n\n{severity}\n\n**Why.** ")


@ENTRIES
def test_a_page_says_how_the_rule_is_set_or_that_it_is_not(entry: Rule) -> None:
    settings = PAGES[entry.code].partition("**Settings.** ")[2]
    lines = re.search(r"```toml\n(.*?)```", settings, re.DOTALL)
    if entry.is_fixed:
        assert settings == "None: no profile and no setting changes this rule.\n"
    else:
        assert lines
        assert list(tomllib.loads(lines[1])["validate"]["rules"]) == [entry.code]


@ENTRIES
def test_a_page_fits_on_a_screen(entry: Rule) -> None:
    lines = PAGES[entry.code].splitlines()
    assert 15 <= len(lines) <= 36
    assert max(map(len, lines)) <= 130


def test_there_is_no_page_without_a_rule() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{code}.md" for code in PAGES)


@pytest.mark.parametrize(
    ("code", "action"), [("history-ordr", "Did you mean history-order?"), ("XML-ROOT", "Did you mean xml-root?")]
)
def test_an_unknown_code_leads_to_the_nearest_one(code: str, action: str) -> None:
    with pytest.raises(NotFound) as error:
        find_rule(code)
    assert error.value.actions == (action, "List all rules: evalmeta rule")


def test_a_code_cannot_be_a_path() -> None:
    with pytest.raises(NotFound):
        find_rule("../pages/xml-root")
