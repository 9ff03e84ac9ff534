"""Runs made by hand, and runs of any content, for tests of reports."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from evalmeta.engine.comparison import ComparedTest
from evalmeta.engine.gate import compare
from evalmeta.engine.statistics import collect
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, EarlierTurn, Run, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.model.tally import summarise
from evalmeta.report.report import BaselineVerdict, Report

STARTED = 1_795_187_104.0
FILE = "force-app/main/default/aiEvaluationDefinitions/Returns_Desk.aiEvaluationDefinition-meta.xml"
LINES = {1: 6, 2: 20, 3: 34, 4: 48, 5: 62}

TOPIC_PASSED = TestResult("topic_sequence_match", Verdict.PASS, "Returns", "Returns", 1.0, "the topic is Returns")
TOPIC_FAILED = TestResult(
    "topic_sequence_match", Verdict.FAILURE, "Returns", "Orders", 0.0, "expected the topic Returns, got Orders"
)
ACTIONS_FAILED = TestResult(
    "action_sequence_match",
    Verdict.FAILURE,
    "['FindOrder', 'PrintLabel']",
    "['FindOrder']",
    0.0,
    "missing: PrintLabel",
    detail=0.67,
)
RESPONSE_FAILED = TestResult(
    "bot_response_rating",
    Verdict.FAILURE,
    "The customer gets 1250 euros back within five days.",
    "You get 12500 euros back.\nThe money is on its way and should reach the account you paid from within five days, "
    "unless your bank needs longer.",
    1.0,
    "numbers differ: expected 1250, got 12500",
    rater="rules",
)
COHERENCE_UNDECIDED = TestResult(
    "coherence",
    Verdict.UNDECIDED,
    actual="You may return it.",
    explanation="only an LLM rater can judge this, and this run has none",
)


def case(number: int, verdict: Verdict, *results: TestResult, utterance: str = "", iteration: int = 1) -> CaseResult:
    started = STARTED + number
    utterance = utterance or f"Question {number}?"
    answer = GeneratedData("You may return it.")
    return CaseResult(number, iteration, utterance, verdict, started, started + 0.25, results, answer)


PASSED = case(1, Verdict.PASS, TOPIC_PASSED)
MIXED_CASES = (
    case(1, Verdict.PASS, TOPIC_PASSED, COHERENCE_UNDECIDED, utterance="How long may I return what I bought?"),
    case(
        2,
        Verdict.FAILURE,
        TOPIC_FAILED,
        COHERENCE_UNDECIDED,
        ACTIONS_FAILED,
        utterance="I want to return a lamp. It came broken, the box was wet, the cable was missing, and the neighbour "
        "who took the parcel says that the carrier dropped it twice.",
    ),
    case(3, Verdict.ERROR, utterance="Please print the label for return R-100")._replace(
        generated=None, error="the agent did not answer within 120 s"
    ),
    case(4, Verdict.UNDECIDED, COHERENCE_UNDECIDED, utterance="Thank you!"),
    case(5, Verdict.FAILURE, RESPONSE_FAILED, utterance="How much do I get back?"),
)


def run(*cases: CaseResult, options: RunOptions | None = None) -> Run:
    return Run(
        id="4KB000000000001GAA",
        definition="Returns_Desk",
        subject_name="Returns_Agent",
        subject_version="v2",
        status=RunStatus.COMPLETED,
        started=STARTED,
        ended=STARTED + 3.2,
        total=len(cases),
        options=options or RunOptions(),
        cases=cases,
    )


def report(*cases: CaseResult, options: RunOptions | None = None) -> Report:
    return report_of(run(*cases, options=options))


def report_of(finished: Run) -> Report:
    return Report(finished, summarise(finished.cases, finished.options))


def mixed() -> Report:
    return replace(report(*MIXED_CASES), file=FILE, lines=LINES)


def rated(min_pass_rate: float) -> Report:
    """Gives a run of two cases in two iterations, three of the four passed."""
    passed = [case(number, Verdict.PASS, TOPIC_PASSED, iteration=i) for number, i in ((1, 1), (2, 1), (1, 2))]
    failed = case(2, Verdict.FAILURE, TOPIC_FAILED, iteration=2)
    return report(*passed, failed, options=RunOptions(iterations=2, min_pass_rate=min_pass_rate))


def judged(name: str, score: float, threshold: float = 0.8, *, turn: int = 0) -> TestResult:
    verdict = Verdict.PASS if score >= threshold else Verdict.FAILURE
    explanation = f"{score:g} of the words are there"
    return TestResult(
        name, verdict, "It is on its way.", "No idea.", score, explanation, threshold=threshold, turn=turn
    )


def conversation(iteration: int, *scores: float) -> CaseResult:
    """Gives a case of two turns, judged in each by what is averaged and at last by what is not."""
    first, second = (judged("response_match_score", score, turn=turn) for turn, score in enumerate(scores, 1))
    topic = TOPIC_PASSED._replace(turn=2)
    recall = TestResult(
        "retrieval/ground_truth/document_recall", Verdict.UNDECIDED, score=0.5, turn=2, is_measured=True
    )
    verdict = Verdict.PASS if sum(scores) >= 2 * 0.8 else Verdict.FAILURE
    results = (first, second, topic, recall)
    return case(2, verdict, *results, utterance="And where is it now?", iteration=iteration)._replace(
        label="multi-turn-test",
        earlier=(EarlierTurn("I bought a lamp.", GeneratedData("Good choice.", latency_ms=12.0)),),
    )


def conversations() -> Report:
    """Gives two iterations of two cases with labels: one passes by its mean, a conversation misses it."""
    greetings = [
        case(1, each.verdict, each, utterance="Hi!", iteration=iteration)._replace(label="greeting-test")
        for iteration, each in enumerate((judged("response_match_score", score) for score in (0.7, 1.0)), 1)
    ]
    options = RunOptions(iterations=2)
    found = greetings[0], conversation(1, 0.4, 0.9), greetings[1], conversation(2, 0.7, 0.9)
    made = report(*found, options=options)
    return replace(made, file=FILE, lines=LINES, statistics=collect(found, options))


def judged_case(number: int, *, passed: bool) -> CaseResult:
    return case(number, *((Verdict.PASS, TOPIC_PASSED) if passed else (Verdict.FAILURE, TOPIC_FAILED)))


def compared() -> Report:
    """Gives a run of four cases beside its baseline: one passes now, one still fails, one fails now."""
    before, after = (
        run(*(judged_case(number, passed=passed) for number, passed in enumerate(each, 1)))
        for each in ((False, False, True, True), (True, False, False, True))
    )
    counts = [collect(each.cases, each.options).cases for each in (before, after)]
    found = compare(ComparedTest(after.definition, ("main", "now"), *counts))
    return replace(report_of(after), baseline=BaselineVerdict(found, passed=False, text="1 suspect"))


def broken_off() -> Report:
    cut = replace(run(MIXED_CASES[0]), status=RunStatus.ERROR, total=5, error="the disk is full")
    return report_of(cut)


texts = st.text() | st.sampled_from(
    ["\x1b]8;;http://x\x07", "\x1b[2J", "\u202e", "]]>", "\x9b", "\ud800", "a\nok 1\r\n# b"]
)
verdicts = st.sampled_from(Verdict)
results = st.builds(
    TestResult, texts, verdicts, texts, texts, st.none(), texts, texts | st.none(), error=texts | st.none()
)
cases = st.builds(
    CaseResult,
    st.integers(1, 1_000),
    st.integers(1, 3),
    texts,
    verdicts,
    st.just(STARTED),
    st.just(STARTED + 1),
    st.lists(results, max_size=3).map(tuple),
    st.builds(GeneratedData, texts) | st.none(),
    texts | st.none(),
)
options = st.builds(
    RunOptions,
    iterations=st.integers(1, 3),
    min_pass_rate=st.floats(0, 1),
    undecided=st.sampled_from(["ignore", "fail"]),
)
runs = st.builds(
    Run,
    id=texts,
    definition=texts,
    subject_name=texts,
    status=st.sampled_from(RunStatus),
    started=st.just(STARTED),
    total=st.integers(0, 3),
    subject_version=texts | st.none(),
    error=texts | st.none(),
    options=options,
    cases=st.lists(cases, max_size=3).map(tuple),
)
reports = runs.map(report_of).flatmap(
    lambda made: st.builds(replace, st.just(made), file=texts | st.none(), lines=st.just({1: 6}))
)
