from __future__ import annotations

import json
import tomllib
from datetime import timedelta
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET  # noqa: TID251 - what pytest wrote itself

import pytest

import evalmeta
from evalmeta.errors import UsageError
from evalmeta.model.evaluation import today
from evalmeta.pytest_plugin import range_error
from formats.discovery_corpus import FOREIGN, NEAR
from systems.run_eval.payloads import SESSION, evaluator, message, payload

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., pytest.RunResult]

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent
DESK = "desk.aiEvaluationDefinition"
SETTINGS = '[subjects.Desk]\nadapter = "python"\ntarget = "agent:answer"\n'
AGENT = """
from pathlib import Path

def answer(utterance):
    with (Path(__file__).parent / "asked.txt").open("a") as asked:
        print(utterance, file=asked)
    if "broken" in utterance:
        raise RuntimeError("the agent is down")
    return {"outcome": "It is on its way.", "topic": "Orders"}

def refund(utterance):
    return {"outcome": "It is on its way.", "topic": "Refunds"}

topics = iter(["Orders", "Refunds", "Orders"])

def moody(utterance):
    return {"outcome": "Perhaps.", "topic": next(topics)}
"""
CITIES = """
import evalmeta
import pytest

@evalmeta.evaluation(min_pass_rate={rate}, iterations={iterations})
@pytest.mark.parametrize("city", ["paris", "rome", "oslo", "bern"])
def test_city(city):
    assert city != "rome", "rome is not there"
"""


def definition(*cases: tuple[str, str, str], subject: str = "Desk") -> str:
    content = "".join(
        f"    <testCase>\n        <number>{number}</number>\n"
        f"        <inputs><utterance>{utterance}</utterance></inputs>\n"
        f"        <expectation><name>{name}</name><expectedValue>{value}</expectedValue></expectation>\n"
        "    </testCase>\n"
        for number, (utterance, name, value) in enumerate(cases, 1)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">\n'
        f"    <name>desk</name>\n    <subjectName>{subject}</subjectName>\n    <subjectType>AGENT</subjectType>\n"
        f"{content}</AiEvaluationDefinition>\n"
    )


PASSING = ("Where is my order?", "topic_sequence_match", "Orders")
FAILING = ("I want a refund", "topic_sequence_match", "Refunds")
BROKEN = ("Are you broken?", "topic_sequence_match", "Orders")
UNDECIDED = ("Be coherent", "coherence", "")


@pytest.fixture
def desk(pytester: pytest.Pytester) -> Callable[..., Path]:
    """Writes a project with a definition of these cases, and its agent."""

    def write(*cases: tuple[str, str, str], settings: str = SETTINGS, subject: str = "Desk") -> Path:
        (pytester.path / "evalmeta.toml").write_text(settings)
        (pytester.path / "agent.py").write_text(AGENT)
        path = pytester.path / DESK
        path.write_text(definition(*cases, subject=subject))
        return path

    return write


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pytest as a program of its own, with this plugin, xdist and what pytest has itself."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(evalmeta.__file__).parent.parent))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    plugins = ["-p", "evalmeta.pytest_plugin", "-p", "xdist.plugin"]
    return lambda *words: pytester.runpytest_subprocess(*plugins, *words, timeout=120)


def asked(path: Path) -> list[str]:
    file = path.parent / "asked.txt"
    return sorted(file.read_text().splitlines()) if file.exists() else []


def properties(case: ET.Element) -> dict[str | None, str | None]:
    return {each.get("name"): each.get("value") for each in case.iter("property")}


def test_the_plugin_is_found_by_its_entry_point() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]

    assert EntryPoint("evalmeta", declared["evalmeta"], "pytest11").load() is import_module("evalmeta.pytest_plugin")


def test_starting_pytest_loads_nothing_heavy(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            heavy = {"httpx", "starlette", "pydantic", "lxml", "click", "rich", "orjson", "yaml"}
            heavy |= {f"evalmeta.{room}" for room in ("api", "engine", "formats", "model", "report", "store")}
            assert not heavy & sys.modules.keys()
        """
    )

    run().assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_named_definition_is_one_test_for_each_case(desk: Callable[..., Path], run: Run) -> None:
    path = desk(PASSING, FAILING, BROKEN, UNDECIDED)

    result = run(DESK, "-v", "-rs")

    result.assert_outcomes(passed=1, failed=1, errors=1, skipped=1)
    assert asked(path) == ["Are you broken?", "Be coherent", "I want a refund", "Where is my order?"]
    result.stdout.fnmatch_lines(
        [
            f"{DESK}::1: Where is my order? PASSED*",
            f"{DESK}::2: I want a refund FAILED*",
            f"{DESK}:16: case 3: ERROR",
            "*agent.py:8: RuntimeError: the agent is down",
            f"{DESK}:11: case 2: FAILURE",
            "  utterance I want a refund",
            "    expected  Refunds",
            "    actual    Orders",
            "    why       expected the topic Refunds, got Orders",
            f"SKIPPED * {DESK}:21: nothing was judged: coherence: *",
        ]
    )


@pytest.mark.parametrize(
    ("words", "suffix", "passed"),
    [
        ([], "aiEvaluationDefinition", 1),
        pytest.param(["."], "aiEvaluationDefinition-meta.xml", 1, marks=pytest.mark.slow),
        pytest.param(["-o", "evalmeta_collect=false"], "aiEvaluationDefinition", 0, marks=pytest.mark.slow),
        pytest.param(
            ["--evalmeta", "-o", "evalmeta_collect=false"], "aiEvaluationDefinition", 1, marks=pytest.mark.slow
        ),
    ],
)
def test_definitions_in_folders_of_a_project_are_collected(
    desk: Callable[..., Path], run: Run, words: list[str], suffix: str, passed: int
) -> None:
    path = desk(PASSING)
    path.rename(path.with_name(f"desk.{suffix}"))

    run(*words).assert_outcomes(passed=passed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "passed"), [([], 0), (["--evalmeta"], 1), (["-o", "evalmeta_collect=true"], 1), ([DESK], 1)]
)
def test_definitions_outside_of_projects_are_collected_when_asked_for(
    desk: Callable[..., Path], run: Run, words: list[str], passed: int
) -> None:
    """A test suite with files that look like evalmeta's does not change when evalmeta is installed."""
    path = desk(PASSING)
    (path.parent / "evalmeta.toml").unlink()

    run("--evalmeta-subject", "agent:answer", *words).assert_outcomes(passed=passed)


@pytest.mark.slow
def test_a_folder_of_a_project_needs_no_flag_and_foreign_files_are_neither_run_nor_hidden(
    desk: Callable[..., Path], run: Run
) -> None:
    folder = desk(PASSING).parent
    for name, content in FOREIGN.items():
        if name not in {"sfdx-project.json", "test_config.json"}:
            (folder / name).write_text(content)
    (folder / "near.yaml").write_text("tests:\n- question: Hi\n  expected: Hello\n")

    result = run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"{len(FOREIGN) - 2} files were not tests*"])
    result.stdout.fnmatch_lines(["ERROR near.yaml - *"])


@pytest.mark.slow
def test_a_definition_whose_agent_only_an_org_has_is_skipped_unless_it_is_asked_for(
    desk: Callable[..., Path], run: Run
) -> None:
    desk(PASSING, subject="Nobody")

    result = run("-rs")

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines([f"SKIPPED * {DESK}:6: not run: no adapter is bound to the agent 'Nobody'*"])
    run("--evalmeta").assert_outcomes(errors=1)


@pytest.mark.slow
def test_every_test_with_a_mistake_in_a_folder_is_an_error(pytester: pytest.Pytester, run: Run) -> None:
    (pytester.path / "tests").mkdir()
    for name, content in NEAR.items():
        (pytester.path / "tests" / name).write_bytes(content.encode())
    ran = run("--evalmeta")
    ran.assert_outcomes(errors=len(NEAR))
    ran.stdout.fnmatch_lines_random([f"ERROR tests/{name} - *" for name in NEAR])


@pytest.mark.slow
def test_files_in_folders_that_are_not_tests_are_counted_and_listed(pytester: pytest.Pytester, run: Run) -> None:
    for name, content in FOREIGN.items():
        (pytester.path / name).write_text(content)
    ran = run("--evalmeta", "-v")
    ran.assert_outcomes()
    names = FOREIGN.keys() - {"sfdx-project.json", "test_config.json"}
    ran.stdout.fnmatch_lines([f"{len(names)} files were not tests:"])
    ran.stdout.fnmatch_lines_random([f"  {name}: it *" for name in names])


@pytest.mark.slow
def test_hidden_and_ignored_files_are_not_collected_unless_they_are_named(desk: Callable[..., Path], run: Run) -> None:
    folder = desk(PASSING).parent
    (folder / "other").mkdir()
    for name in (".hidden.yaml", "other/tests.yaml"):
        (folder / name).write_text("tests:\n- question: Hi\n  expected: Hello\n")
    (folder / ".forceignore").write_text("other\n")
    run("--evalmeta").assert_outcomes(passed=1)
    run("--evalmeta", "other", ".hidden.yaml").assert_outcomes(errors=2)


@pytest.mark.slow
def test_the_cases_in_a_file_run_once_with_the_spec_that_names_it(desk: Callable[..., Path], run: Run) -> None:
    folder = desk(PASSING).parent
    (folder / DESK).unlink()
    (folder / "q.csv").write_text("input,topic,contains\nWhere is my order?,Orders,Yes\n")
    (folder / "all.yaml").write_text("subject: Desk\ncases: q.csv\n")
    collected = run("--evalmeta", "--collect-only", "-q").stdout
    collected.fnmatch_lines(["all.yaml::*", "*1/2 tests collected (1 deselected)*"])
    collected.no_fnmatch_line("q.csv::*")


@pytest.mark.slow
def test_other_files_named_definition_are_not_collected(pytester: pytest.Pytester, run: Run) -> None:
    (pytester.path / "Definition.txt").touch()

    run("--evalmeta").assert_outcomes()


@pytest.mark.slow
def test_files_of_other_formats_are_collected_too(desk: Callable[..., Path], run: Run) -> None:
    folder = desk(PASSING).parent
    spec = "name: Orders\nsubjectType: AGENT\nsubjectName: Desk\ntestCases:\n"
    case = "  - utterance: Where is my order?\n    expectedTopic: {}\n"
    (folder / "orders.yaml").write_text(spec + case.format("Orders") + case.format("Refunds"))
    (folder / "other.yaml").write_text("stages: []\n")
    (folder / "set.test.json").write_text('{"a": 1}')
    outcome = run("orders.yaml")
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["*expected the topic Refunds, got Orders*"])
    run("other.yaml").assert_outcomes()
    run("--evalmeta").stdout.fnmatch_lines(["2 files were not tests: other.yaml, set.test.json; -v says why"])


SPEC = "name: {}\nsubjectType: AGENT\nsubjectName: Desk\ntestCases:\n  - utterance: Hi\n    expectedTopic: Refunds\n"


@pytest.mark.slow
def test_specs_and_tables_in_folders_are_collected_at_their_lines(desk: Callable[..., Path], run: Run) -> None:
    folder = desk(PASSING).parent / "specs"
    folder.mkdir()
    (folder / "orders.yaml").write_text(SPEC.format("Orders"))
    (folder / "orders.csv").write_text("Utterance,Expected Topic\nHi,Refunds\n")
    (folder / "ci.yml").write_text("on: push\njobs: {}\n")
    (folder / "data.csv").write_text("a,b\n1,2\n")
    (folder / "package.json").write_text('{"name": "x"}')
    topic = evaluator("planner_topic_assertion", actual="$.generatedData.topic", expected="Refunds")
    tests = payload(SESSION, message("Hi"), topic)
    (folder / "payload.json").write_bytes(tests[:-1] + b', "subjectName": "Desk"}')
    outcome = run("--evalmeta", "specs")
    outcome.assert_outcomes(failed=3)
    lines = ("orders.csv:2: case 1", "orders.yaml:5: case 1", "payload.json:1: case 1")
    outcome.stdout.fnmatch_lines([f"specs/{line}: FAILURE" for line in lines])
    run("specs").assert_outcomes(failed=3)
    run("-o", "evalmeta_collect=false", "specs").assert_outcomes()


@pytest.mark.slow
def test_the_spec_of_a_collected_definition_is_deselected_unless_it_is_named(
    desk: Callable[..., Path], run: Run
) -> None:
    folder = desk(PASSING).parent
    (folder / "spec.yaml").write_text(SPEC.format(DESK.split(".", maxsplit=1)[0]))
    outcome = run("--evalmeta")
    outcome.assert_outcomes(passed=1, deselected=1)
    outcome.stdout.fnmatch_lines([f"spec.yaml is not run: {DESK} is its definition, but their test cases differ.*"])
    run("--evalmeta", DESK, "spec.yaml").assert_outcomes(passed=1, failed=1)


@pytest.mark.slow
def test_only_selected_cases_are_asked(desk: Callable[..., Path], run: Run) -> None:
    path = desk(PASSING, FAILING, BROKEN)
    other = path.with_name("other.aiEvaluationDefinition")
    other.write_text(path.read_text().replace("I want a refund", "No refund"))

    run(DESK, other.name, "-k", "refund or nothing").assert_outcomes(failed=2, deselected=4)
    assert asked(path) == ["I want a refund", "No refund"]


@pytest.mark.slow
def test_a_node_id_selects_its_case_for_any_utterance(desk: Callable[..., Path], run: Run) -> None:
    path = desk(("Where is [my] order::1?\n\tTell\u202eme", *PASSING[1:]), FAILING)
    listed = run(DESK, "--collect-only", "-q").outlines[0]

    assert listed == rf"{DESK}::1: Where is (my) order:1? Tell\u202eme"
    run(listed).assert_outcomes(passed=1)
    assert "I want a refund" not in asked(path)


@pytest.mark.slow
def test_cases_are_asked_at_the_same_time(desk: Callable[..., Path], run: Run) -> None:
    path = desk(PASSING, FAILING)
    (path.parent / "agent.py").write_text(
        "import asyncio\nboth = asyncio.Barrier(2)\n"
        "async def answer(utterance):\n    await both.wait()\n    return {'outcome': 'Yes.', 'topic': 'Orders'}\n"
    )

    run(DESK).assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize("dist", ["load", pytest.param("loadfile", marks=pytest.mark.slow)])
def test_workers_ask_each_case_once(desk: Callable[..., Path], run: Run, dist: str) -> None:
    path = desk(PASSING, FAILING, BROKEN)

    result = run(DESK, "-n", "2", "--dist", dist)

    result.assert_outcomes(passed=1, failed=1, errors=1)
    assert asked(path) == ["Are you broken?", "I want a refund", "Where is my order?"]
    result.stdout.fnmatch_lines([f"FAILED {DESK}::2: I want a refund - topic_sequence_match*"])


@pytest.mark.slow
def test_undecided_cases_fail_if_the_project_is_strict(desk: Callable[..., Path], run: Run) -> None:
    desk(UNDECIDED, settings=f'{SETTINGS}[run]\nundecided = "fail"\n')

    result = run(DESK)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"{DESK}:6: case 1: FAILURE"])


@pytest.mark.slow
def test_a_case_that_judges_too_little_fails(desk: Callable[..., Path], run: Run) -> None:
    desk(PASSING, UNDECIDED)

    result = run(DESK, "--evalmeta-min-decided", "0.8")

    result.assert_outcomes(passed=1, failed=1, skipped=1)
    result.stdout.fnmatch_lines(
        [f"{DESK}: not passed: only 1 of 2 results were judged (50 %; required: at least 80 %)"]
    )


@pytest.mark.slow
def test_an_agent_can_be_named_without_a_project(desk: Callable[..., Path], run: Run) -> None:
    path = desk(FAILING, subject="Nobody")
    (path.parent / "evalmeta.toml").unlink()

    run(DESK, "--evalmeta-subject", "agent:refund").assert_outcomes(passed=1)
    run(DESK, "-o", "evalmeta_subject=agent:refund").assert_outcomes(passed=1)
    run(DESK, "--evalmeta-subject", "agent:answer").assert_outcomes(failed=1)


@pytest.mark.slow
def test_an_agent_that_is_not_bound_is_an_error_with_the_lines_to_add(desk: Callable[..., Path], run: Run) -> None:
    desk(PASSING, subject="Nobody")

    result = run(DESK)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [f"{DESK}:6: no adapter is bound to the agent 'Nobody'", "", "Try this:", "*evalmeta.toml*", "*Nobody]*"]
    )


@pytest.mark.slow
def test_a_case_passes_by_the_pass_rate_of_its_iterations(desk: Callable[..., Path], run: Run) -> None:
    desk(PASSING, settings=SETTINGS.replace("answer", "moody"))
    words = [DESK, "--evalmeta-iterations", "3", "--evalmeta-min-pass-rate"]

    run(*words, "0.6").assert_outcomes(passed=1)
    result = run(*words, "0.7")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [f"{DESK}:6: case 1: 2 of 3 iterations passed; at least 70 % must", "", "iteration 2: FAILURE"]
    )


@pytest.mark.slow
def test_the_junit_file_has_the_pass_rate_of_a_case(
    pytester: pytest.Pytester, desk: Callable[..., Path], run: Run
) -> None:
    desk(PASSING, FAILING)

    run(DESK, "--evalmeta-iterations", "2", "--junitxml=junit.xml")

    first, second = ET.parse(pytester.path / "junit.xml").iter("testcase")  # noqa: S314 - as above
    assert first.get("name") == "1: Where is my order?"
    assert properties(first) == {"pass_rate": "1.0", "iterations": "2"}
    assert [each.get("message") for each in second.iter("failure")] == [
        "topic_sequence_match: expected the topic Refunds, got Orders"
    ]


@pytest.mark.slow
def test_errors_of_iterations_are_counted_separately(desk: Callable[..., Path], run: Run) -> None:
    desk(BROKEN)

    result = run(DESK, "--evalmeta-iterations", "2")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*: 0 of 2 iterations passed, 2 errors; at least 100 % must"])


@pytest.mark.slow
def test_cases_after_too_many_errors_say_that_they_were_not_asked(desk: Callable[..., Path], run: Run) -> None:
    desk(BROKEN, PASSING, settings=f"{SETTINGS}[run]\nmax_errors = 1\nconcurrency = 1\n")

    result = run(DESK)

    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*case 1: ERROR", f"{DESK}:11: the case was not run: *"])


@pytest.mark.slow
def test_a_case_that_ran_less_often_than_it_says_does_not_pass(desk: Callable[..., Path], run: Run) -> None:
    folder = desk(settings=f"{SETTINGS}[run]\nmax_errors = 1\nconcurrency = 1\n").parent
    often = "- {input: Where is my order?, topic: Orders, iterations: 3}\n"
    (folder / "spec.yaml").write_text(f"subject: Desk\ntestCases:\n{often}- {{input: Hello, topic: Orders}}\n")

    run("spec.yaml").assert_outcomes(passed=2)
    assert asked(folder / DESK) == ["Hello", *["Where is my order?"] * 3]

    (folder / "spec.yaml").write_text(f"subject: Desk\ntestCases:\n{often}- {{input: Are you broken?}}\n")
    result = run("spec.yaml")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["spec.yaml:3: the case was run 1 of 3 times: stopped at error 1 *"])


@pytest.mark.slow
def test_a_bad_definition_is_an_error_like_that_of_validate(desk: Callable[..., Path], run: Run) -> None:
    path = desk(PASSING)
    path.write_text(path.read_text().replace("topic_sequence_match", "topic_sequence_mach"))

    result = run(DESK)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([DESK, "  9:22 error *topic_sequence_mach*", "*topic_sequence_match*", "*1 error*"])


@pytest.mark.slow
def test_a_case_of_a_file_that_a_spec_names_is_reported_with_its_line_there(
    pytester: pytest.Pytester, desk: Callable[..., Path], run: Run
) -> None:
    folder = desk(PASSING).parent / "specs"
    folder.mkdir()
    (folder / "spec.yaml").write_text("subject: Desk\ncases: data.csv\n")
    (folder / "data.csv").write_text("input,equals\nHi,No\n")
    outcome = run("specs/spec.yaml", "--junit-xml=out.xml", "-o", "junit_family=xunit1")
    outcome.stdout.fnmatch_lines(["specs/data.csv:2: case 1: FAILURE"])
    assert 'file="specs/data.csv" line="1"' in (pytester.path / "out.xml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "conftest",
    [
        "from evalmeta.pytest_plugin import files\nfiles.case_places = lambda *paths: 1 / 0",
        "def pytest_runtest_setup(item):\n    1 / 0",
    ],
)
def test_an_unexpected_error_shows_its_traceback(
    pytester: pytest.Pytester, desk: Callable[..., Path], run: Run, conftest: str
) -> None:
    desk(PASSING)
    pytester.makeconftest(conftest)

    result = run(DESK)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*conftest.py:2: *", "*ZeroDivisionError*"])


@pytest.mark.slow
def test_a_definition_without_a_project_says_what_to_do(desk: Callable[..., Path], run: Run) -> None:
    path = desk(PASSING)
    (path.parent / "evalmeta.toml").unlink()

    result = run(DESK)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*is not in a project with settings for its agent", "Try this:", "*--evalmeta-subject*"]
    )


@pytest.mark.slow
def test_an_agent_is_looked_for_in_pytests_root_where_there_is_no_project(
    pytester: pytest.Pytester, desk: Callable[..., Path], run: Run
) -> None:
    path = desk(PASSING)
    (path.parent / "evalmeta.toml").unlink()
    path.rename(pytester.mkdir("checks") / DESK)
    run(f"checks/{DESK}", "--evalmeta-subject", "agent:answer", "--rootdir", ".").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        (("--evalmeta-iterations", "0"), "*iterations is 0; it must be a whole number from 1 to 1000"),
        (("--evalmeta-iterations", "x"), "*'x' is not a number"),
        (("--evalmeta-min-pass-rate", "nan"), "*min_pass_rate is nan; it must be from 0 to 1"),
        (("--evalmeta-min-pass-rate", "80"), "*min_pass_rate is 80.0; it must be from 0 to 1"),
    ],
)
def test_options_out_of_range_are_refused(run: Run, option: tuple[str, str], complaint: str) -> None:
    result = run(*option)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([complaint])


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_an_evaluation_passes_by_its_rate_although_tests_fail(
    pytester: pytest.Pytester, run: Run, workers: list[str]
) -> None:
    pytester.makepyfile(test_it=CITIES.format(rate=0.75, iterations=3))

    result = run(*workers)

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=10, xfailed=3)
    result.stdout.fnmatch_lines(
        [
            "PASSED test_it.py::test_city: 75 % (9 of 12); at least 75 % must pass",
            "  by iteration: 3 of 4, 3 of 4, 3 of 4",
            "  rome, failed in 3 of 3 iterations: AssertionError: rome is not there*",
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_an_evaluation_below_its_rate_fails_the_session(
    pytester: pytest.Pytester, run: Run, workers: list[str]
) -> None:
    pytester.makepyfile(test_it=CITIES.format(rate=0.8, iterations=1))

    result = run("--junitxml=junit.xml", "-v", *workers)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=3, xfailed=1, failed=1)
    result.stdout.fnmatch_lines(["FAILED test_it.py::test_city - 75 % (3 of 4); at least 80 % must pass"])
    cases = {each.get("name"): each for each in ET.parse(pytester.path / "junit.xml").iter("testcase")}  # noqa: S314
    assert properties(cases["test_city"]) == {
        "pass_rate": "0.75",
        "min_pass_rate": "0.8",
        "passed": "3",
        "failed": "1",
        "errors": "0",
        "failing_cases": "rome",
        "iterations": "1",
        "outcomes": "3 of 4",
        "inputs": '[{"city": "paris"}, {"city": "rome"}, {"city": "oslo"}, {"city": "bern"}]',
    }
    assert [each.get("message") for each in cases["test_city"].iter("failure")] == [
        "75 % (3 of 4); at least 80 % must pass"
    ]
    assert properties(cases["test_city[rome]"]) == {
        "evaluation": "test_it.py::test_city",
        "verdict": "FAILURE",
        "inputs": '{"city": "rome"}',
    }


@pytest.mark.slow
def test_the_name_of_an_evaluation_selects_its_tests(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_it=CITIES.format(rate=0, iterations=2))

    run("test_it.py::test_city").assert_outcomes(passed=7, xfailed=2)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "passed"), [(["--last-failed"], 3), (["-p", "no:cacheprovider"], 4)])
def test_the_tests_of_a_failed_evaluation_run_again_as_the_last_failed(
    pytester: pytest.Pytester, run: Run, words: list[str], passed: int
) -> None:
    pytester.makepyfile(test_it=CITIES.format(rate=0.8, iterations=1) + "\ndef test_other():\n    pass\n")

    run(*words).assert_outcomes(passed=4, xfailed=1, failed=1)
    run(*words).assert_outcomes(passed=passed, xfailed=1, failed=1)


@pytest.mark.slow
def test_errors_fail_the_session_at_any_pass_rate(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(
        test_it="""
        import evalmeta
        import pytest

        @pytest.fixture
        def agent(request):
            assert request.param != "setup"
            yield request.param
            assert request.param != "teardown"

        @evalmeta.evaluation(min_pass_rate=0)
        @pytest.mark.parametrize("agent", ["setup", "call", "teardown", "none"], indirect=True)
        def test_agent(agent):
            if agent == "call":
                raise ConnectionError("nobody answers")
        """
    )

    result = run("--junitxml=junit.xml")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2, failed=2, errors=2)
    cases = {each.get("name"): each for each in ET.parse(pytester.path / "junit.xml").iter("testcase")}  # noqa: S314
    assert [properties(cases[f"test_agent[{name}]"])["verdict"] for name in ("setup", "call", "teardown", "none")] == [
        *("ERROR", "ERROR", "ERROR", "PASS")
    ]
    result.stdout.fnmatch_lines(
        [
            "  call: ConnectionError: nobody answers",
            "FAILED test_it.py::test_agent: 100 % (1 of 1), 3 errors; at least 0 % must pass",
        ]
    )


@pytest.mark.slow
def test_errors_of_an_agent_can_count_as_failed_tests(pytester: pytest.Pytester, run: Run) -> None:
    """One flaky response does not break the suite; an error of a fixture does."""
    pytester.makepyfile(
        test_it="""
        import evalmeta
        import pytest

        @pytest.fixture
        def broken():
            raise OSError("no disk")

        @evalmeta.evaluation(min_pass_rate=0.75, errors="fail")
        @pytest.mark.parametrize("city", ["paris", "rome", "oslo", "bern"])
        def test_agent(city):
            if city == "rome":
                raise ConnectionError("nobody answers")

        @evalmeta.evaluation(min_pass_rate=0, errors="fail")
        def test_fixture(broken):
            pass
        """
    )

    result = run("-k", "test_agent")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=4, xfailed=1, deselected=1)
    result.stdout.fnmatch_lines(
        [
            "PASSED test_it.py::test_agent: 75 % (3 of 4); at least 75 % must pass",
            "  rome: ConnectionError: nobody answers",
        ]
    )
    run("-k", "test_fixture").assert_outcomes(failed=1, errors=1, deselected=4)


@pytest.mark.slow
def test_the_decorator_needs_no_parentheses(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(
        test_it="""
        import evalmeta

        @evalmeta.evaluation
        def test_agent():
            assert False, "wrong"
        """
    )

    result = run()

    result.assert_outcomes(xfailed=1, failed=1)
    result.stdout.fnmatch_lines(["*0 % (0 of 1); at least 100 % must pass*"])


@pytest.mark.slow
def test_skipped_and_xfail_tests_do_not_count(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(
        test_it="""
        import evalmeta
        import pytest

        @evalmeta.evaluation(min_pass_rate=0.5)
        @pytest.mark.parametrize("what", [
            "good",
            pytest.param("skipped", marks=pytest.mark.skip),
            pytest.param("bad", marks=pytest.mark.xfail),
            pytest.param("strict", marks=pytest.mark.xfail(strict=True)),
        ])
        def test_it(what):
            assert what != "bad"

        @evalmeta.evaluation()
        def test_nothing():
            pytest.skip("not today")
        """
    )

    result = run()

    result.assert_outcomes(passed=2, skipped=2, xfailed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["PASSED test_it.py::test_it: 50 % (1 of 2); at least 50 % must pass", "  strict: ?XPASS(strict)?*"]
    )
    result.stdout.fnmatch_lines(["NOT JUDGED test_it.py::test_nothing[[]evaluation]: 0 of 1 test counted (1 skipped)"])


SKIPPED = """
import evalmeta
import pytest

@evalmeta.evaluation
@pytest.mark.parametrize("city", {cities})
{mark}
def test_agent(city):
    pytest.skip("the agent is not there")
"""


@pytest.mark.parametrize(
    ("cities", "counted"),
    [
        (["paris", "rome"], "0 of 2 tests counted (2 skipped)"),
        pytest.param([], "0 of 0 tests counted (no parameter sets)", marks=pytest.mark.slow),
    ],
)
def test_an_evaluation_without_tests_that_count_is_not_judged_and_fails(
    pytester: pytest.Pytester, run: Run, cities: list[str], counted: str
) -> None:
    pytester.makepyfile(test_it=SKIPPED.format(cities=cities, mark=""))
    cases = {"1": {"utterance": "paris", "passed": 1, "failed": 1}}
    known = {"evalmeta": "baseline", "version": 1, "tests": {"test_it.py::test_agent": {"cases": cases}}}
    (pytester.path / "base.json").write_text(json.dumps(known))

    result = run("--evalmeta-baseline", "base.json", "--evalmeta-report-dir", "reports")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    name = "test_it.py::test_agent"
    result.stdout.fnmatch_lines(
        [f"NOT JUDGED {name}: {counted}", "  in base.json: 50 % (1 of 2); now nothing judged", f"FAILED {name} - *"]
    )
    (report,) = (pytester.path / "reports").iterdir()
    assert json.loads(report.read_text())["not_judged"] == {name: counted}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
@pytest.mark.parametrize("mark", ["@pytest.mark.skipif(True, reason='no key')", "@pytest.mark.xfail(run=False)"])
def test_an_evaluation_whose_marks_say_that_no_test_counts_is_skipped(
    pytester: pytest.Pytester, run: Run, mark: str, workers: list[str]
) -> None:
    pytester.makepyfile(test_it=SKIPPED.format(cities=["paris", "rome"], mark=mark))

    result = run(*workers)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["NOT JUDGED test_it.py::test_agent: 0 of 2 tests counted (2 *)"])


@pytest.mark.slow
def test_methods_and_single_functions_are_evaluations_too(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(
        test_it="""
        import evalmeta

        class TestAgent:
            @evalmeta.evaluation(min_pass_rate=0.5, iterations=2)
            def test_method(self, evalmeta_iteration):
                assert evalmeta_iteration == 1

        @evalmeta.evaluation(min_pass_rate=0)
        def test_function(evalmeta_iteration):
            assert evalmeta_iteration == 2
        """
    )

    result = run()

    result.assert_outcomes(passed=3, xfailed=2)
    result.stdout.fnmatch_lines(
        [
            "PASSED test_it.py::TestAgent::test_method: 50 % (1 of 2); at least 50 % must pass",
            "  failed in 1 of 2 iterations: assert 2 == 1",
            "PASSED test_it.py::test_function[[]evaluation]: 0 % (0 of 1); at least 0 % must pass",
            "  assert 1 == 2",
        ]
    )


@pytest.mark.slow
def test_an_interrupted_evaluation_has_no_verdict(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_it=CITIES.format(rate=0.5, iterations=1), test_other="def test_other():\n    assert 0")

    result = run("-x", "test_it.py", "test_other.py")

    result.assert_outcomes(passed=3, xfailed=1, failed=1)
    result.stdout.fnmatch_lines(["STOPPED test_it.py::test_city: 75 % *"])


@pytest.mark.slow
def test_only_some_failing_cases_are_listed(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(
        test_it="""
        import evalmeta
        import pytest

        @evalmeta.evaluation(min_pass_rate=0)
        @pytest.mark.parametrize("number", range(25))
        def test_number(number):
            pytest.fail("no")
        """
    )

    run().stdout.fnmatch_lines(["  19: Failed: no", "  and 5 more cases"])


def test_methods_of_unittest_are_refused(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(
        test_it="""
        import unittest
        import evalmeta

        class TestAgent(unittest.TestCase):
            @evalmeta.evaluation()
            def test_method(self):
                pass
        """
    )

    result = run()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_method: @evalmeta.evaluation cannot decorate methods of unittest.TestCase"])


@pytest.mark.parametrize(
    "terms", [{"min_pass_rate": 80}, {"min_pass_rate": -0.1}, {"iterations": 0}, {"iterations": 1_001}]
)
def test_arguments_out_of_range_are_refused_at_once(terms: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=r"; it must be "):
        evalmeta.evaluation(**terms)


def test_iterations_are_whole() -> None:
    assert range_error("iterations", 1.5) == "iterations is 1.5; it must be a whole number from 1 to 1000"


def test_only_functions_can_be_decorated() -> None:
    with pytest.raises(UsageError, match="can only decorate test functions"):
        evalmeta.evaluation()(ET)
    with pytest.raises(UsageError, match=r"can only decorate test functions, not 0\.8"):
        evalmeta.evaluation(0.8)
    with pytest.raises(UsageError, match="errors is 'ignore'; it must be 'error' or 'fail'"):
        evalmeta.evaluation(errors="ignore")  # type: ignore[call-overload]


@pytest.mark.slow
def test_files_that_cannot_run_are_named_before_the_first_case_and_others_run(
    pytester: pytest.Pytester, desk: Callable[..., Path], run: Run
) -> None:
    desk(PASSING)
    (pytester.path / "shop.aiEvaluationDefinition").write_text(definition(PASSING, subject="Shop"))
    outcome = run("--evalmeta", "-rE")
    outcome.assert_outcomes(passed=1, errors=1)
    outcome.stdout.fnmatch_lines(
        [
            "collected 2 items",
            "evalmeta: shop.aiEvaluationDefinition: 1 case cannot run: no adapter is bound to the agent 'Shop'",
            "desk.aiEvaluationDefinition .*",
            "shop.aiEvaluationDefinition:6: no adapter is bound to the agent 'Shop'",
        ]
    )
    assert "cannot run" not in run("--evalmeta", "--collect-only").stdout.str()


@pytest.mark.slow
def test_a_case_in_quarantine_is_an_expected_failure_that_may_pass(desk: Callable[..., Path], run: Run) -> None:
    listed = (
        f'[[quarantine]]\ntest = "desk"\ncase = {number}\nreason = "flaky"\nuntil = {today()}\n' for number in (1, 2, 3)
    )
    path = desk(PASSING, FAILING, BROKEN, FAILING, settings=SETTINGS + "".join(listed))
    result = run(path.name, "-rxX")
    result.assert_outcomes(xfailed=2, xpassed=1, failed=1)
    result.stdout.fnmatch_lines([f"*in quarantine until {today()}: flaky*"])


@pytest.mark.slow
def test_a_failure_says_that_the_quarantine_of_its_case_has_ended(desk: Callable[..., Path], run: Run) -> None:
    ended = f'[[quarantine]]\ntest = "desk"\ncase = 1\nreason = "flaky"\nuntil = {today() - timedelta(days=1)}\n'
    result = run(desk(FAILING, settings=SETTINGS + ended).name)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"  its quarantine ended on {today() - timedelta(days=1)}, so it counts"])
