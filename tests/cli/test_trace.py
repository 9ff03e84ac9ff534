from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome

    Evalmeta = Callable[..., Outcome]

RECORDINGS = Path(__file__).parents[1] / "traces/recordings"
LANGCHAIN = RECORDINGS / "langchain_openinference.jsonl"
PYDANTIC_AI = RECORDINGS / "pydantic_ai_5.jsonl"
TESTS = """\
subject: recorded
testCases:
- input: Where is order 10045?
  contains: on its way
  topic: order_desk
  actions: [get_order]
- input: Thanks
  contains: welcome
  actions: []
"""
STEPS = """\
          steps     agent Orders                    34 ms
                      model chat                  0.36 ms  13 tokens
                      tool get_order(id="10045")    14 ms
                      model chat                  0.25 ms  13 tokens
                      tool cancel_order(id="1")    2.9 ms
                        error: ValueError: no such order: 1
                      model chat                  0.25 ms  13 tokens
"""
CHECK = """
def calls(answer, *, trace):
    (agent,) = trace["steps"]
    called = [(step["name"], step["input"]) for step in agent["steps"] if step["kind"] == "tool"]
    return called == [("get_order", {"id": "10045"}), ("cancel_order", {"id": "1"})]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_turns_of_a_trace_are_shown_with_their_calls(evalmeta: Evalmeta) -> None:
    shown = evalmeta("trace", "import", str(LANGCHAIN))

    assert shown.code == 0, shown.err
    assert "   utterance  Where is order 10045?\n" in shown.out
    assert '   actions    get_order(id="10045")\n' in shown.out
    assert "   actions    none\n" in shown.out


def test_recorded_answers_are_judged_without_asking(folder: Path, evalmeta: Evalmeta) -> None:
    written = evalmeta("trace", "import", str(LANGCHAIN), "-o", "recordings.jsonl")
    lines = written.out.partition("[subjects.recorded]")
    (folder / "evalmeta.toml").write_text("".join(lines[1:]))
    (folder / "desk.yaml").write_text(TESTS)

    ended = evalmeta("run", "desk.yaml")

    assert "Wrote 2 recorded answers to recordings.jsonl." in written.out
    assert (ended.code, "2 passed, 0 failed" in ended.out) == (0, True), ended.out


def test_a_turn_that_failed_is_an_error_of_its_case(folder: Path, evalmeta: Evalmeta) -> None:
    evalmeta("trace", "import", str(PYDANTIC_AI), "-o", "recordings.jsonl")
    (folder / "evalmeta.toml").write_text('[subjects.recorded]\nadapter = "replay"\nfile = "recordings.jsonl"\n')
    (folder / "desk.yaml").write_text(
        "subject: recorded\ntestCases:\n- input: Cancel order 1\n  not_contains: x\n  actions: []\n"
    )

    ended = evalmeta("run", "desk.yaml")

    assert ended.code == 1
    assert "ValueError: no such order: 1" in ended.out


def test_the_parts_of_a_trace_may_be_in_several_files(folder: Path, evalmeta: Evalmeta) -> None:
    lines = PYDANTIC_AI.read_text().splitlines(keepends=True)
    (folder / "a.jsonl").write_text("".join(lines[1::2]))
    (folder / "b.jsonl").write_text("".join(lines[0::2]))

    assert evalmeta("trace", "import", "a.jsonl", "b.jsonl").out == evalmeta("trace", "import", str(PYDANTIC_AI)).out


def test_json_names_the_rule_that_gave_each_value(evalmeta: Evalmeta) -> None:
    turns = json.loads(evalmeta("trace", "import", str(LANGCHAIN), "--json").out)["result"]["turns"]

    assert [turn["utterance"] for turn in turns] == ["Where is order 10045?", "Thanks"]
    assert turns[0]["actions"][0]["input"] == {"id": "10045"}
    assert turns[0]["rules"]["answer"] == "llm.output_messages of the last model call"


def test_secrets_in_traces_are_hidden(folder: Path, evalmeta: Evalmeta) -> None:
    bearer = "Bearer abcdefghijklmnopqrstuvwxyz012345"
    (folder / "t.jsonl").write_text(PYDANTIC_AI.read_text().replace("Where is order 10045?", f"Use {bearer}"))

    shown = evalmeta("trace", "import", "t.jsonl", "-o", "recordings.jsonl")

    assert shown.code == 0
    assert bearer not in shown.out + (folder / "recordings.jsonl").read_text()


def test_what_the_project_redacts_is_hidden_in_steps_too(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "evalmeta.toml").write_text('[redact]\npatterns = ["10045"]\n')

    shown = evalmeta("trace", "import", str(PYDANTIC_AI), "-v", "-o", "recordings.jsonl")
    as_json = evalmeta("trace", "import", str(PYDANTIC_AI), "--json")

    assert (shown.code, as_json.code) == (0, 0)
    assert 'get_order(id="[secret]")' in shown.out
    assert "10045" not in shown.out + as_json.out + (folder / "recordings.jsonl").read_text()


@pytest.fixture
def failed_run(folder: Path, evalmeta: Evalmeta) -> Outcome:
    """Judge the recorded answers of an agent of Strands, of which a check in Python gets the steps."""
    evalmeta("trace", "import", str(RECORDINGS / "strands.jsonl"), "-o", "recordings.jsonl")
    (folder / "evalmeta.toml").write_text('[subjects.recorded]\nadapter = "replay"\nfile = "recordings.jsonl"\n')
    (folder / "checks.py").write_text(CHECK)
    case = "- input: Where is order 10045?\n  contains: refunded\n  function: checks:calls\n"
    (folder / "desk.yaml").write_text(f"subject: recorded\ntestCases:\n{case}")
    return evalmeta("run", "desk.yaml")


def test_the_steps_are_stored_and_shown_with_the_expectation_that_failed(
    failed_run: Outcome, evalmeta: Evalmeta
) -> None:
    shown = evalmeta("test", "results", "latest", "-v")

    assert failed_run.code == shown.code == 100
    assert STEPS in shown.out
    assert shown.out.index("cancel_order(") < shown.out.index('contains "refunded": FAILURE')
    assert "1 failed" in shown.out
    assert "tool get_order" not in failed_run.out


def test_a_check_in_python_gets_the_steps_with_their_arguments(failed_run: Outcome, evalmeta: Evalmeta) -> None:
    line = json.loads(evalmeta("test", "results", "latest", "--result-format", "jsonl").out)

    assert failed_run.code == 100
    assert [(result["name"], result["verdict"]) for result in line["results"]] == [
        ("contains", "FAILURE"), ("function", "PASS"),
    ], line["results"]  # fmt: skip


def test_results_as_json_have_the_steps_and_can_be_judged_again_with_them(
    folder: Path, failed_run: Outcome, evalmeta: Evalmeta
) -> None:
    assert failed_run.code == 100
    (run,) = json.loads(evalmeta("test", "results", "latest", "--json").out)["result"]
    shown = run["testCases"][0]["generatedData"]
    lines = evalmeta("test", "results", "latest", "--result-format", "jsonl").out
    (folder / "recordings.jsonl").write_text(lines)

    evalmeta("run", "desk.yaml")

    (agent,) = shown["trace"]["steps"]
    assert [(step["kind"], step.get("action")) for step in agent["steps"]] == [
        ("model", None), ("tool", 0), ("model", None), ("tool", 1), ("model", None),
    ]  # fmt: skip
    assert json.loads(lines)["trace"] == shown["trace"]
    assert STEPS in evalmeta("test", "results", "latest", "-v").out


@pytest.mark.slow
def test_rescored_runs_and_archives_keep_the_steps(failed_run: Outcome, evalmeta: Evalmeta) -> None:
    assert failed_run.code == 100
    evalmeta("test", "rescore", "latest")
    rescored = evalmeta("test", "results", "latest", "-v")
    evalmeta("test", "archive", "latest", "kept")

    assert STEPS in rescored.out
    assert STEPS in evalmeta("test", "results", "kept", "-v").out


def test_the_steps_of_a_turn_that_failed_are_shown_with_the_error(evalmeta: Evalmeta) -> None:
    shown = evalmeta("trace", "import", str(PYDANTIC_AI), "-v")

    lines = [line.split()[:3] for line in shown.out.partition("Cancel order 1")[2].splitlines()]
    assert ["steps", "agent", "order_desk"] in lines
    assert ["error:", "ValueError:", "no"] in lines[lines.index(["steps", "agent", "order_desk"]) :]
    assert "steps" not in evalmeta("trace", "import", str(PYDANTIC_AI)).out


def test_an_exported_run_has_the_steps_again(failed_run: Outcome, evalmeta: Evalmeta) -> None:
    assert failed_run.code == 100
    evalmeta("test", "results", "latest", "--trace", "run.otlp.jsonl")
    turns = json.loads(evalmeta("trace", "import", "run.otlp.jsonl", "--json").out)["result"]["turns"]

    assert [step["name"] for step in turns[0]["steps"]] == ["Orders"]
    assert "tool get_order(" in evalmeta("trace", "import", "run.otlp.jsonl", "-v").out


def test_a_turn_as_json_has_its_steps_beside_the_id_of_the_trace(evalmeta: Evalmeta) -> None:
    turn = json.loads(evalmeta("trace", "import", str(LANGCHAIN), "--json").out)["result"]["turns"][0]

    assert turn["trace"] == "cf8005ccf56a56c8bbd5636c4d81b79b"
    assert [step["name"] for step in turn["steps"]] == ["order_desk"]


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        ('{"resourceSpans": []}', 2, "none of an agent or a model"),
        ('{"testCases": []}', 2, "is not a request of OTLP: it has no resourceSpans"),
        ('{"resourceSpans": [', 2, "t.jsonl:1 is not valid JSON"),
        (None, 2, "the file t.jsonl cannot be found"),
    ],
)
def test_what_is_not_a_trace_is_an_error_and_nothing_is_written(
    folder: Path, evalmeta: Evalmeta, content: str | None, code: int, said: str
) -> None:
    if content is not None:
        (folder / "t.jsonl").write_text(content)

    ended = evalmeta("trace", "import", "t.jsonl", "-o", "recordings.jsonl")

    assert (ended.code, said in ended.err) == (code, True), ended.err
    assert not (folder / "recordings.jsonl").exists()


RUN_AGENT = """\
STATE = {"state": {"cart": [1]}, "handoffs": []}


def answer(utterance):
    if "cancel" in utterance:
        raise ValueError("no such order")
    if "total" in utterance:
        return {"total": 12.5, "items": [{"id": 1}]}
    if "silent" in utterance:
        return "No report.\\n"
    if "nothing" in utterance:
        return {"outcome": "Nothing to do.", "topic": "", "actions": [], "trace": {"steps taken": 0}, **STATE}
    found = {"name": "get_order", "input": {"id": "10045", "lines": [1, 2]}, "output": {"state": "sent"}}
    mailed = {"name": "send_mail", "input": {"to": "a"}, "output": "[1]", "error": "no address", "latency_ms": 12.3}
    tokens = {"input": 12, "output": 4, "cached": 3, "model": "m-1"}
    actions = [found, mailed, "log"]
    return {"outcome": "Your order 10045 is on its way.", "topic": "Orders", "actions": actions, "tokens": tokens}
"""
RUN_TESTS = """\
subject: desk:answer
testCases:
- input: Where is order 10045?
  contains: on its way
  topic: Orders
  tokens: 16
  latency_ms: 60000
  actions:
  - {name: get_order, input: {id: "10045", lines: [1, 2]}, output: {state: sent}}
  - {name: send_mail, output: "[1]", error: no address}
  - log
- {input: Where is order 10045?, topic: Returns}
- {input: Where is it?, actions: [{name: get_order, input: {id: "1"}}, send_mail, log]}
- {input: Please cancel, not_contains: x, actions: []}
- {input: the total, json: {path: '$.items[0].id', equals: 1}}
- {input: the total again, json: {path: $.total, at_least: 13}}
- {input: silent, topic: Orders, contains: report}
- {input: silent too, equals: No report.}
- {input: nothing, topic: "", actions: []}
- {input: nothing more, topic: Orders}
- turns: [{input: first, contains: on its way}, {input: now cancel, contains: x}]
- turns: [{input: one, contains: 10045}, {input: silent, contains: Zebra}, {input: one, topic: Orders}]
- {input: a tone, rubric: [It is polite and kind.]}
"""


def judged(path: Path) -> list[tuple[object, ...]]:
    results = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        (
            *(case[key] for key in ("iteration", "number", "verdict", "label")),
            *((result["name"], result["verdict"], result["turn"], result["score"]) for result in case["results"]),
        )
        for case in results
    ]


def test_a_run_that_is_exported_and_imported_has_the_same_verdicts(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "desk.py").write_text(RUN_AGENT)
    (folder / "tests.yaml").write_text(RUN_TESTS)
    (folder / "evalmeta.toml").write_text('[subjects.recorded]\nadapter = "replay"\nfile = "recordings.jsonl"\n')
    both = ("--iterations", "2")

    first = evalmeta("run", "tests.yaml", *both, "--trace", "run.jsonl", "--report", "first.jsonl")
    read = evalmeta("trace", "import", "run.jsonl", "-o", "recordings.jsonl")
    second = evalmeta("run", "tests.yaml", *both, "--agent", "recorded", "--report", "second.jsonl")

    assert (read.code, second.code) == (0, first.code), read.err
    recordings = [json.loads(line) for line in (folder / "recordings.jsonl").read_text().splitlines()]
    assert {"total": 12.5, "items": [{"id": 1}]} in [recording.get("outcome") for recording in recordings]
    assert ({"cart": [1]}, []) in [(recording.get("state"), recording.get("handoffs")) for recording in recordings]
    assert {"steps taken": 0} in [recording.get("trace") for recording in recordings]
    found = judged(folder / "first.jsonl")
    assert judged(folder / "second.jsonl") == found
    assert {case[2] for case in found} == {"PASS", "FAILURE", "ERROR", "UNDECIDED"}
    assert len(found) == 26


def test_results_are_exported_later_with_the_same_spans(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "desk.py").write_text(RUN_AGENT)
    (folder / "tests.yaml").write_text(RUN_TESTS)

    code = evalmeta("run", "tests.yaml", "--trace", "first.jsonl").code
    again = evalmeta("test", "results", "latest", "--trace", "second.jsonl")

    assert again.code == code
    assert (folder / "second.jsonl").read_text() == (folder / "first.jsonl").read_text()


def test_cases_of_the_same_utterance_get_their_own_recordings(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "desk.py").write_text("answers = iter('bca')\n\n\ndef answer(utterance):\n    return next(answers)\n")
    cases = "".join(f"- {{input: Hello, equals: {letter}}}\n" for letter in "bca")
    (folder / "tests.yaml").write_text(f"subject: desk:answer\ntestCases:\n{cases}")
    (folder / "evalmeta.toml").write_text('[subjects.recorded]\nadapter = "replay"\nfile = "recordings.jsonl"\n')

    evalmeta("run", "tests.yaml", "--concurrency", "1", "--trace", "run.jsonl")
    evalmeta("trace", "import", "run.jsonl", "-o", "recordings.jsonl")

    assert "3 passed" in evalmeta("run", "tests.yaml", "--agent", "recorded", "--seed", "7").out


def test_runs_in_python_are_saved_as_traces_that_can_be_imported(folder: Path, evalmeta: Evalmeta) -> None:
    run = evaluate([{"input": "Where?", "contains": "way"}], lambda _: {"outcome": "On its way.", "actions": []})

    run.save(folder / "run.otlp.jsonl")
    shown = evalmeta("trace", "import", "run.otlp.jsonl")

    assert ("utterance  Where?\n" in shown.out, "actions    none\n" in shown.out) == (True, True), shown.out
    assert not shown.err


def test_runs_that_ask_the_same_are_warned_of_and_iterations_are_not(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "desk.py").write_text("def answer(utterance):\n    return utterance\n")
    spec = "subject: desk:answer\ntestCases:\n- {input: Hello, contains: Hello}\n"
    for name in ("one.yaml", "two.yaml"):
        (folder / name).write_text(spec)

    evalmeta("run", "one.yaml", "--iterations", "2", "--trace", "one.jsonl")
    evalmeta("run", "one.yaml", "two.yaml", "--trace", "two.jsonl")

    assert not evalmeta("trace", "import", "one.jsonl", "-o", "recordings.jsonl").err
    warned = evalmeta("trace", "import", "two.jsonl", "-o", "recordings.jsonl").err
    assert "Warning: 1 utterance in the same case of several runs" in warned
