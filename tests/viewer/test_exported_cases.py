"""Case results as the JSON of an export."""

from __future__ import annotations

from datetime import date

from evalmeta import limits
from evalmeta.model.evaluation import Quarantine
from evalmeta.model.generated_data import Action, GeneratedData, Passage, Tokens
from evalmeta.model.run import CaseResult, EarlierTurn, ErrorOrigin, TestResult, Verdict, Verdicts
from evalmeta.model.spending import Spent
from evalmeta.store.judgements import Mark, ResultPlace
from evalmeta.viewer.exported_cases import case_json

FRIDAY = GeneratedData("It arrives on Friday.", "Orders", (), latency_ms=250.0)


def case_of(*results: TestResult, verdict: Verdict = Verdict.PASS, **others: object) -> CaseResult:
    values = {"generated": FRIDAY, **others}
    return CaseResult(7, 1, "Where is it?", verdict, 10.0, 10.5, results, **values)


def shown(case: CaseResult, **others: object) -> dict[str, object]:
    return {**case_json(case, is_repeated=False, **others)}


def test_what_is_empty_is_left_out() -> None:
    assert shown(case_of()) == {
        "number": 7,
        "verdict": "PASS",
        "state": "PASS",
        "started": 10.0,
        "took": "500 ms",
        "latency": "250 ms",
        "turns": [
            {
                "utterance": "Where is it?",
                "answer": "It arrives on Friday.",
                "facts": ["topic Orders", "no actions", "250 ms"],
            }
        ],
    }


def test_an_empty_answer_is_an_answer() -> None:
    [turn] = case_json(case_of(generated=GeneratedData("")), is_repeated=True)["turns"]
    assert turn == {"utterance": "Where is it?", "answer": "(empty answer)"}


def test_each_turn_has_its_results_and_failed_ones_say_why() -> None:
    failed = TestResult(
        *("topic_sequence_match", Verdict.FAILURE, "Orders", "", 0.0, "another topic"), turn=1, detail=0.5
    )
    rated = TestResult("contains", Verdict.PASS, "Friday", "Friday", label="says Friday", rater="rules", turn=2)
    case = case_of(failed, rated, verdict=Verdict.FAILURE, earlier=(EarlierTurn("Hello", GeneratedData("Hi")),))

    values = shown(case)

    first, second = values["turns"]
    assert values["why"] == "topic_sequence_match in turn 1: another topic"
    assert (first["verdict"], second["verdict"]) == ("FAILURE", "PASS")
    assert first["results"] == [
        {
            "verdict": "FAILURE",
            "label": "Topic",
            "name": "topic_sequence_match",
            "facts": ["score 0", "partial 0.5"],
            "why": ["another topic"],
            "texts": ["Orders", "(empty)"],
        }
    ]
    assert second["results"] == [
        {
            "verdict": "PASS",
            "label": "says Friday",
            "name": "contains",
            "facts": ["rated by rules"],
            "texts": ["Friday", "Friday"],
        }
    ]


def test_averages_measures_errors_and_both_verdicts_are_in_words() -> None:
    results = (
        TestResult("response_match_score", Verdict.FAILURE, score=0.5, threshold=0.8),
        TestResult("latency", Verdict.UNDECIDED, score=12.0, is_measured=True),
        TestResult("judge", Verdict.ERROR, error="the judge is away", explanation="not judged"),
        TestResult(
            "contains", Verdict.PASS, verdicts=Verdicts(Verdict.PASS, Verdict.FAILURE, explanation="no Friday in it")
        ),
    )

    [turn] = shown(case_of(*results, verdict=Verdict.FAILURE))["turns"]

    average, judge, both, measured = turn["results"]
    assert average["facts"] == ["score 0.5 (required mean: 0.8)"]
    assert (judge["verdict"], judge["why"], judge["error"]) == ("ERROR", ["not judged"], "the judge is away")
    assert both["why"] == ["org PASS, evalmeta FAILURE: no Friday in it"]
    assert (measured["verdict"], measured["facts"]) == ("measured", ["score 12"])


def test_calls_have_what_they_received_and_returned_and_missing_ones_a_place() -> None:
    actions = (
        Action("Find_Order", {"number": 12}, {"state": "sent"}, latency_ms=100.0),
        Action("Send_Mail", error="no server"),
    )
    missing = TestResult(
        *("action_sequence_match", Verdict.FAILURE, "['Find_Order', 'Send_Mail', 'Log']"),
        "['Find_Order', 'Send_Mail']",
        explanation="missing: Log",
    )

    [turn] = shown(case_of(missing, verdict=Verdict.FAILURE, generated=GeneratedData("Sent", None, actions, 200.0)))[
        "turns"
    ]

    found, sent, lost, rest = turn["steps"]
    assert found["texts"] == ['{\n  "number": 12\n}', '{\n  "state": "sent"\n}']
    assert (found["took"], found["bars"], found["level"]) == ("100 ms", [["0.00%", "50.00%"]], 1)
    assert (sent["error"], sent["texts"]) == ("no server", ["(not reported)", "(not reported)"])
    assert (lost["kind"], lost["name"]) == ("missing", "Log")
    assert "texts" not in lost
    assert (rest["kind"], rest["took"]) == ("rest", "100 ms")


def test_what_else_is_known_of_an_answer_is_there() -> None:
    trace = {"steps": [{"kind": "model", "name": "gpt", "duration_ms": 5, "tokens": {"input": 3, "output": None}}]}
    answer = GeneratedData(
        "Hi",
        handoffs=("Sales",),
        tokens=Tokens(1_200, 20),
        first_token_ms=30.0,
        retrieved=(Passage("a.md", "Terms"), Passage("b.md")),
        state={"open": True},
        trace=trace,
    )

    [turn] = shown(case_of(generated=answer))["turns"]

    assert turn["facts"] == ["handoffs Sales", "first token 30 ms", "tokens 1,200 in, 20 out"]
    assert turn["retrieved"] == [["a.md", "Terms"], ["b.md", ""]]
    assert turn["state"] == '{\n  "open": true\n}'
    assert turn["steps"][0]["facts"] == ["tokens 3 in, ? out"]


def test_a_trace_of_the_agents_own_is_there_as_it_is() -> None:
    assert shown(case_of(generated=GeneratedData("Hi", trace={"own": 1})))["trace"] == '{\n  "own": 1\n}'


def test_an_error_says_where_it_comes_from_and_is_shown_once() -> None:
    short = case_of(
        verdict=Verdict.ERROR, error="no\x1bdays", origin=ErrorOrigin.CRASH, traceback="line 1", generated=None
    )
    long = case_of(verdict=Verdict.ERROR, error="first\nsecond", generated=None)

    assert shown(short)["why"] == "agent crash: no\\x1bdays"
    assert (shown(short).get("error"), shown(short)["traceback"]) == ("no\\x1bdays", "line 1")
    assert (shown(long)["why"], shown(long)["error"]) == ("first second", "first\nsecond")
    assert "error" not in shown(case_of(verdict=Verdict.ERROR, error="gone", generated=None))


def test_a_case_has_its_label_quarantine_metadata_costs_and_state() -> None:
    case = case_of(
        TestResult("contains", Verdict.PASS),
        TestResult("coherence", Verdict.UNDECIDED, explanation="no rater"),
        label="parcel 7",
        quarantine=Quarantine("flaky", date(2026, 12, 24)),
        metadata={"owner": "ann"},
        spent=(Spent("agent", "gpt", 1, 0, 10, 2, 0, 0, 5_000),),
    )

    values = shown(case)

    assert (values["label"], values["state"], values["verdict"]) == ("parcel 7", "PARTLY", "PASS")
    assert values["quarantine"] == "In quarantine until 2026-12-24: flaky"
    assert values["metadata"] == "owner: ann"
    assert "cost of the agent (gpt)" in str(values["costs"])
    assert values["why"] == "coherence: no rater"


def test_results_beyond_the_limit_are_counted() -> None:
    results = tuple(TestResult(f"contains-{number}", Verdict.PASS) for number in range(limits.VIEW_EXPECTATIONS + 1))

    values = shown(case_of(*results))

    assert values["more"] == "1 more result of this case is"
    assert len(values["turns"][0]["results"]) == limits.VIEW_EXPECTATIONS


def test_steps_beyond_the_limit_are_counted() -> None:
    actions = tuple(Action(f"Call_{number}") for number in range(limits.VIEW_STEPS + 2))

    [turn] = shown(case_of(generated=GeneratedData("Hi", None, actions)))["turns"]

    assert turn["notes"] == ["2 more steps: the trace of the json report has all."]


def test_what_people_say_stands_at_its_result() -> None:
    place = ResultPlace("", "4KB", 1, 7, "contains")
    mark = Mark(place, "u1", "Ann", "wrong", "too strict", 20.0)

    [turn] = shown(case_of(TestResult("contains", Verdict.PASS)), marks=[mark])["turns"]

    assert turn["results"][0]["marks"] == ["wrong says Ann: too strict"]
