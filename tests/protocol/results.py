"""Runs and results of any content, as the store and an org's agents can make them."""

from __future__ import annotations

from datetime import date

from hypothesis import strategies as st

from evalmeta.model.evaluation import Quarantine
from evalmeta.model.generated_data import Action, GeneratedData, Passage, Tokens
from evalmeta.model.run import CaseResult, EarlierTurn, ErrorOrigin, Run, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import RunOptions

texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ["&amp;", "&#39;", "&lt;b&gt;", 'It\'s "it" & <more>', "['A', 'B']", "[]", "\u20ac\n", "\x00"]
)
times = st.integers(1, 4_102_444_800_000).map(lambda milliseconds: milliseconds / 1000)
counts = st.integers(0, 2**40)
numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
actions = st.builds(
    Action,
    name=texts,
    input=st.dictionaries(texts, json_values, max_size=2),
    output=json_values.filter(lambda value: value != {}),
    latency_ms=st.none() | numbers,
)
answers = st.builds(
    GeneratedData,
    outcome=texts,
    topic=st.none() | texts,
    actions=st.none() | st.lists(actions, max_size=3).map(tuple),
    latency_ms=st.none() | numbers,
    session_id=st.none() | texts,
    tokens=st.none() | st.builds(Tokens, st.none() | counts, counts),
    trace=json_values,
    retrieved=st.none() | st.lists(st.builds(Passage, texts, st.none() | texts), max_size=2).map(tuple),
    first_token_ms=st.none() | numbers,
    state=st.none() | st.dictionaries(texts, json_values, max_size=2),
    handoffs=st.none() | st.lists(texts, max_size=2).map(tuple),
    traceparent=st.none() | texts,
)
results = st.builds(
    TestResult,
    name=texts,
    verdict=st.sampled_from(Verdict),
    expected=texts,
    actual=texts,
    score=st.none() | numbers,
    explanation=texts,
    label=st.none() | texts.map(lambda text: f"label {text}"),
    detail=st.none() | numbers,
    rater=st.none() | texts,
    error=st.none() | texts,
    turn=st.integers(0, 9),
    is_measured=st.booleans(),
    threshold=st.none() | numbers,
).map(lambda result: result if result.verdict is Verdict.ERROR else result._replace(error=None))
cases = st.builds(
    CaseResult,
    number=st.integers(1, 1000),
    iteration=st.integers(1, 9),
    utterance=texts,
    verdict=st.sampled_from(Verdict),
    started=times,
    ended=times,
    results=st.lists(results, max_size=3).map(tuple),
    generated=st.none() | answers,
    error=st.none() | texts,
    label=texts,
    earlier=st.lists(st.builds(EarlierTurn, texts, answers), max_size=1).map(tuple),
    traceback=texts,
    quarantine=st.none() | st.builds(Quarantine, texts, st.dates(date(1000, 1, 1)), st.booleans()),
    unanswered=st.none() | answers,
    origin=st.none() | st.sampled_from(ErrorOrigin),
    tags=st.lists(texts, max_size=2).map(tuple),
)
options = st.builds(
    RunOptions,
    iterations=st.integers(1, 9),
    min_pass_rate=st.floats(0, 1),
    undecided=st.sampled_from(["ignore", "fail"]),
    min_decided=st.none() | st.floats(0, 1),
    concurrency=st.integers(1, 99),
    case_timeout=st.floats(0.001, 3600),
)
runs = st.builds(
    Run,
    id=texts,
    definition=texts,
    subject_name=texts,
    status=st.sampled_from(RunStatus),
    started=times,
    total=st.integers(0, 2**53),
    subject_version=st.none() | texts,
    ended=st.none() | times,
    error=st.none() | texts,
    options=options,
    cases=st.lists(cases, max_size=3).map(tuple),
)
