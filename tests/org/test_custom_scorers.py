from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from engine.raters.llm.model_server import NONCE_PLACE, ModelServer, model_serving, saying
from evalmeta import evaluate
from evalmeta.cli.main import main
from evalmeta.model.agent_scorer import session_view, transcript_of
from evalmeta.model.definition import HistoryMessage
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import Verdict
from evalmeta.store import judgements as judges
from evalmeta.xmlio.reader import NAMESPACE
from org.parts import make_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.model.run import TestResult

LABELS = "".join(
    f"<outputEnumValue><isFallback>{fallback}</isFallback><isSystemFallback>false</isSystemFallback>"
    f"<outcomeType>{outcome}</outcomeType><value>{label}</value></outputEnumValue>"
    for label, outcome, fallback in (
        ("Polite", "Pass", "false"),
        ("Rude", "Fail", "true"),
        ("Mute", "NotApplicable", "false"),
    )
)
RANGE = (
    "<specification><valueSpecification><max>5</max><min>1</min><step>1</step><threshold>3</threshold>"
    "</valueSpecification></specification>"
)
PROMPT = "Choose {!$Input:AllowedLabels} for {!$Input:Session}."


def version(inside: str = LABELS, *, number: int = 1, status: str = "Available", engine: str = "PromptTemplate") -> str:
    by = f"<engine><engineRef>Tone</engineRef><engineType>{engine}</engineType></engine>"
    head = f"<label>Tone</label>{inside}<status>{status}</status><versionNumber>{number}</versionNumber>"
    return f"<scorerVersion>{by}{head}</scorerVersion>"


def template(*contents: str, active: int = 1) -> str:
    versions = "".join(
        f"<templateVersions><content>{content}</content><status>Published</status>"
        f"<versionIdentifier>{number}</versionIdentifier></templateVersions>"
        for number, content in enumerate(contents, 1)
    )
    return f"<activeVersionIdentifier>{active}</activeVersionIdentifier>{versions}"


def write(root: Path, kind: str, name: str, content: str) -> Path:
    file = root / f"{kind[0].lower()}{kind[1:]}s" / f"{name}.{kind[0].lower()}{kind[1:]}"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'<{kind} xmlns="{NAMESPACE}">{content}</{kind}>')
    return file


def write_tests(root: Path, *, scorer: str = "Polite_Tone") -> Path:
    head = "<name>Visits</name><subjectName>Desk</subjectName><subjectType>AGENT</subjectType>"
    asked = "<inputs><utterance>When do you open?</utterance></inputs><number>1</number>"
    named = f"<scorer><name>{scorer}</name><scorerType>Custom</scorerType></scorer>"
    return write(root, "AiTestingDefinition", "Visits", f"{head}<testCase>{asked}{named}</testCase>")


def write_scorer(root: Path, *versions: str, type_: str = "lightning__textType") -> None:
    head = f"<dataType>LightningType</dataType><inputScope>Session</inputScope><lightningType>{type_}</lightningType>"
    write(root, "AiAgentScorerDefinition", "Polite_Tone", head + "".join(versions or (version(),)))


def write_template(root: Path, *contents: str, active: int = 1) -> None:
    write(root, "GenAiPromptTemplate", "Tone", template(*(contents or (PROMPT,)), active=active))


def answer(utterance: str) -> dict[str, object]:
    assert utterance
    return {"outcome": "At ten, with pleasure.", "topic": "Hours", "actions": ["GetHours"]}


def scoring(output: object) -> bytes:
    return saying(json.dumps({"nonce": NONCE_PLACE, "explanation": "It says so.", "output": output}))


def judged(root: Path, server: ModelServer | None = None, **settings: object) -> TestResult:
    rater = {"adapter": "llm", "model": "judge-1", "url": server.url, **settings} if server else None
    [case] = evaluate(root / "aiTestingDefinitions/Visits.aiTestingDefinition", answer, rater=rater).run.cases
    return case.results[0]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a project with a test, a scorer and its template, without kept ratings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judges, "_OF_PROCESS", judges.MemoryRatings())
    made = make_project(tmp_path / "project").root
    write_tests(made)
    write_scorer(made)
    write_template(made)
    return made


@pytest.mark.parametrize(
    ("label", "verdict"), [("Polite", Verdict.PASS), ("rude", Verdict.FAILURE), ("Mute", Verdict.UNDECIDED)]
)
def test_a_label_decides_by_its_outcome(root: Path, label: str, verdict: Verdict) -> None:
    with model_serving(scoring(label)) as server:
        result = judged(root, server)
    assert (result.verdict, result.actual, result.expected) == (verdict, label.capitalize(), "Polite")
    assert "Polite_Tone v1" in (result.rater or "")


@pytest.mark.parametrize(("number", "verdict"), [(3, Verdict.PASS), (2, Verdict.FAILURE)])
def test_a_number_passes_from_the_threshold_on(root: Path, number: int, verdict: Verdict) -> None:
    write_scorer(root, version(RANGE), type_="lightning__integerType")
    with model_serving(scoring(number)) as server:
        result = judged(root, server)
    assert (result.verdict, result.score, result.expected) == (verdict, float(number), "at least 3")


def test_a_boolean_is_reported_and_not_judged(root: Path) -> None:
    write_scorer(root, version(""), type_="lightning__booleanType")
    with model_serving(scoring(True)) as server:
        result = judged(root, server)
    assert (result.verdict, result.actual, result.is_measured) == (Verdict.UNDECIDED, "true", True)


@pytest.mark.parametrize(
    ("inside", "type_", "output"), [(LABELS, "text", "Kind"), (RANGE, "integer", 6), ("", "boolean", 1)]
)
def test_an_output_that_the_scorer_does_not_allow_is_an_error(
    root: Path, inside: str, type_: str, output: object
) -> None:
    write_scorer(root, version(inside), type_=f"lightning__{type_}Type")
    with model_serving(scoring(output)) as server:
        result = judged(root, server)
    assert (result.verdict, "not a readable judgement" in (result.error or "")) == (Verdict.ERROR, True)


def test_the_model_gets_the_active_prompt_and_the_session_as_data(root: Path) -> None:
    write_template(root, "Old.", PROMPT, "Newer.", active=2)
    with model_serving(scoring("Polite")) as server:
        judged(root, server)
    messages = server.bodies[0]["messages"]
    assert isinstance(messages, list)
    system, user = (str(message["content"]) for message in messages)
    assert "Choose Polite, Rude, Mute for (the value of session in the user message)." in system
    [turn] = json.loads(user)["session"]["runs"]
    assert [message["message"] for message in turn["messages"]] == ["When do you open?", "At ten, with pleasure."]
    assert (turn["topicName"], turn["agentLoop"]["steps"][0]["name"]) == ("Hours", "GetHours")


def test_the_newest_available_version_judges(root: Path) -> None:
    versions = [
        version(number=number, status=status) for number, status in ((2, "Available"), (1, "Available"), (3, "Draft"))
    ]
    write_scorer(root, *versions)
    with model_serving(scoring("Polite")) as server:
        assert "Polite_Tone v2" in (judged(root, server).rater or "")


def without_template(root: Path) -> None:
    root.joinpath("genAiPromptTemplates/Tone.genAiPromptTemplate").unlink()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda root: write_tests(root, scorer="Polite_Ton"),
            "the project has no custom scorer 'Polite_Ton'; did you mean 'Polite_Tone'? If not, add ",
        ),
        (
            lambda root: write_scorer(root, version(status="Draft"), version(number=2, status="Archived")),
            "no version of the custom scorer 'Polite_Tone' is Available: 1 is Draft, 2 is Archived",
        ),
        (
            lambda root: write_scorer(root, version(engine="Manual")),
            "the custom scorer 'Polite_Tone' cannot be run locally: people judge by it (engineType Manual)",
        ),
        (
            without_template,
            "the custom scorer 'Polite_Tone' judges by the prompt template 'Tone', whose text cannot be found; add ",
        ),
        (
            lambda root: write_template(root, "Use {!$Flow:Orders}."),
            "the prompt template 'Tone' uses {!$Flow:Orders}, which only an org can fill",
        ),
        (lambda root: root, "only an LLM rater can carry out the prompt of this custom scorer, and this run has none"),
    ],
)
def test_what_is_missing_is_said(root: Path, change: Callable[[Path], object], reason: str) -> None:
    change(root)
    result = judged(root)
    assert (result.verdict, result.explanation[: len(reason)]) == (Verdict.UNDECIDED, reason)


def test_the_embedded_org_judges_by_deployed_scorers(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    root.joinpath("desk.py").write_text("def answer(utterance):\n    return 'At ten, with pleasure.'\n")
    with model_serving(scoring("Rude")) as server:
        root.joinpath("evalmeta.toml").write_text(
            '[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n[raters.judge]\nadapter = "llm"\n'
            f'model = "judge-1"\nurl = "{server.url}"\n'
        )
        for command in ("deploy", "test run --api-name Visits --wait 2 --rater judge"):
            with pytest.raises(SystemExit):
                main(command.split())
    assert "actual    Rude" in capsys.readouterr().out


def test_the_session_begins_with_the_conversation_history() -> None:
    history = [
        HistoryMessage("user", "Hi"),
        HistoryMessage("agent", "Hello.", topic="Welcome"),
        HistoryMessage("user", "So"),
    ]
    session = session_view(history, (), "When?", GeneratedData("At ten."))
    lines = ["user: Hi", "agent: Hello.", "user: So", "user: When?", "agent: At ten."]
    assert transcript_of(session).splitlines() == lines
    assert session["metrics"] == {"turns": 3}
