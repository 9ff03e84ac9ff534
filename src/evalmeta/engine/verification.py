"""Checking the verdicts of another org: its recorded answers are judged again by evalmeta's rules.

Both verdicts of a result stand side by side, and doubts say which verdicts of the org mean less than they seem to.
The doubts are about what has been observed of Salesforce's orgs and is not documented; docs/orgs.md lists them.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta.engine.case_run import rescore_case
from evalmeta.engine.metrics import OWN
from evalmeta.engine.refusals import is_refusal
from evalmeta.model.aggregation import case_verdict
from evalmeta.model.evaluation import Case, Evaluation, WorkItem
from evalmeta.model.expectations import ACTIONS, OUTCOME, canonical_name, expectation_kind, parse_actions
from evalmeta.model.run import DECIDED, CaseResult, Doubt, Run, RunStatus, TestResult, Verdict, Verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.engine.interfaces import Scorer
    from evalmeta.model.definition import Expectation

_COMPARISONS: Final = frozenset({"string_comparison", "numeric_comparison"})
_REFUSAL_METRICS: Final = frozenset({"coherence", "completeness"})
# A reference as some orgs return it instead of its value, such as {gs.response.topic}; JSON objects begin otherwise.
_TEMPLATE: Final = re.compile(r"\{[A-Za-z_$][^\"{}:]*\}")


async def verify(
    run: Run, evaluation: Evaluation, scorers: Mapping[str, Scorer], *, earlier: Sequence[Run] = ()
) -> Run:
    """Return a run of another org with the verdicts of evalmeta's rules beside the org's, and with its doubts.

    `scorers` are the rules; `concurrency` of the run's options is how many cases they judge at the same time. `earlier`
    are runs of the same definition in the org, which show verdicts that change without a change.
    """
    cases = {case.number: case for case in evaluation.cases}
    places = asyncio.Semaphore(run.options.concurrency)

    async def check(result: CaseResult) -> CaseResult:
        case = cases.get(result.number)
        if case is None:
            error = f"the org returned a result for case {result.number}, which the definition does not have"
            return result._replace(verdict=Verdict.ERROR, error=error)
        async with places:
            judged = await _verified(result, case, scorers, seconds=run.options.case_timeout)
            return without_own_verdicts(judged, _NOT_JUDGED)

    checked = tuple(await asyncio.gather(*map(check, run.cases)))
    doubts = [
        doubt._replace(number=result.number, iteration=result.iteration)
        for result in checked
        for doubt in _doubts(result, cases.get(result.number))
    ]
    doubts += _repeated(checked)
    total = len(cases) * run.options.iterations if run.status is RunStatus.COMPLETED else 0
    run = replace(run, cases=checked, total=max(run.total, total))
    return replace(run, doubts=(*run.doubts, *doubts, *_changed_verdicts(run, earlier)))


def _repeated(results: Iterable[CaseResult]) -> Iterator[Doubt]:
    for (iteration, number), times in Counter((result.iteration, result.number) for result in results).items():
        if times > 1:
            text = f"the org returned {times} results for one case of one iteration"
            yield Doubt("repeated-case", text, number, iteration)


async def _verified(result: CaseResult, case: Case, scorers: Mapping[str, Scorer], *, seconds: float) -> CaseResult:
    """Return a case with both verdicts of each result, and with a result for each expectation that the org left out."""
    turn = case.turns[-1]
    if result.generated is None:
        return result
    if not _is_same(result.utterance, turn.utterance):
        return without_own_verdicts(result, _OTHER_QUESTION)
    recorded = result._replace(utterance=turn.utterance)
    local = await rescore_case(WorkItem(result.iteration, case), recorded, scorers, seconds=seconds)
    own, places = list(result.results), _places(turn.expectations, result.results)
    for expectation, judged, place in zip(turn.expectations, local.results, places, strict=False):
        if place is not None:
            theirs = own[place]
            both = Verdicts(theirs.verdict, judged.verdict, judged.explanation, theirs.explanation)
            own[place] = theirs._replace(verdicts=both)
        elif _is_due(expectation):
            both = Verdicts(Verdict.UNDECIDED, judged.verdict, judged.explanation, _NOT_RETURNED)
            missing = judged._replace(verdict=Verdict.UNDECIDED, score=None, explanation=_NOT_RETURNED, verdicts=both)
            own.append(missing._replace(detail=None, rater=None, error=None, is_measured=False))
    verdict = result.verdict if result.error else case_verdict(own)
    return result._replace(utterance=turn.utterance, results=tuple(own), verdict=verdict)


def _places(expectations: Sequence[Expectation], results: Sequence[TestResult]) -> list[int | None]:
    """Return the place of each expectation's result, or None.

    A result belongs to the expectation with its name and value. Results whose values no expectation has belong to the
    others of their name in order, but only if there are as many: otherwise nobody knows what they are about.
    """
    free: defaultdict[str, list[int]] = defaultdict(list)
    for place, result in enumerate(results):
        free[canonical_name(result.name)].append(place)
    places: list[int | None] = [None] * len(expectations)
    others: defaultdict[str, list[int]] = defaultdict(list)
    for number, expectation in enumerate(expectations):
        name, value = canonical_name(expectation.name), _value_of(expectation)
        match = next((place for place in free[name] if results[place].expected.strip() == value), None)
        if match is None:
            others[name].append(number)
        else:
            free[name].remove(match)
            places[number] = match
    for name, numbers in others.items():
        if len(numbers) == len(free[name]):
            for number, place in zip(numbers, free[name], strict=True):
                places[number] = place
    return places


def without_own_verdicts(result: CaseResult, reason: str) -> CaseResult:
    """Return a case with the org's verdict beside each result that evalmeta did not judge, for the reason given."""
    results = (
        judged
        if judged.verdicts or judged.is_measured
        else judged._replace(verdicts=Verdicts(judged.verdict, Verdict.UNDECIDED, reason, judged.explanation))
        for judged in result.results
    )
    return result._replace(results=tuple(results))


_NOT_RETURNED: Final = "the org returned no result for this expectation"
_NOT_JUDGED: Final = "evalmeta did not judge this result"
_OTHER_QUESTION: Final = "the org asked something else than the definition says"


def _is_same(asked: str, expected: str) -> bool:
    return asked.split() == expected.split()


def _value_of(expectation: Expectation) -> str:
    by_parameter = (parameter.value for parameter in expectation.parameters if parameter.name == "expected")
    return (next(by_parameter, None) or expectation.expected_value or "").strip()


def _is_due(expectation: Expectation) -> bool:
    """Return whether an org must return a result: it judges no topic, actions or answer without an expected value."""
    kind = expectation_kind(expectation.name)
    return kind is None or kind.needs != "value" or bool(_value_of(expectation))


def _doubts(result: CaseResult, case: Case | None) -> Iterator[Doubt]:
    if case is None:
        yield Doubt("unasked-case", result.error or "")
        return
    if not _is_same(result.utterance, case.turns[-1].utterance):
        asked = f"the org asked {result.utterance[:100]!r}, which is not what the definition says"
        yield Doubt("other-question", f"{asked}; its verdicts were not checked")
    if result.generated is None:
        if result.error:
            yield from _broken_call(result.error, case)
        return
    yield from _missing(result.results, case.turns[-1].expectations)
    for judged in result.results:
        yield from _meaningless(judged, result)


def _broken_call(error: str, case: Case) -> Iterator[Doubt]:
    if "agent call failed" not in error.casefold():
        return
    names = ", ".join(variable.name for variable in case.context_variables)
    advice = f": check that the agent declares {names}" if names else ""
    text = "the org says 'Agent call failed', as it does after a long wait if a context variable is not declared"
    yield Doubt("failed-call", f"{text}{advice}")


def _missing(results: Iterable[TestResult], expectations: Sequence[Expectation]) -> Iterator[Doubt]:
    left_out = [result for result in results if result.verdicts and result.explanation == _NOT_RETURNED]
    wanted = Counter(canonical_name(expectation.name) for expectation in expectations if _is_due(expectation))
    returned = Counter(canonical_name(result.name) for result in results if result not in left_out)
    for name in dict.fromkeys(result.name for result in left_out):
        total, counted = wanted[canonical_name(name)], returned[canonical_name(name)]
        of = f"{counted} of {total} results" if total > 1 else "no result"
        verdicts = sorted({result.verdicts.local for result in left_out if result.verdicts and result.name == name})
        says = f"; evalmeta's verdict: {', '.join(verdicts)}" if verdicts != [Verdict.UNDECIDED] else ""
        yield Doubt("missing-result", f"the org returned {of} of {name}{says}")


def _meaningless(result: TestResult, case: CaseResult) -> Iterator[Doubt]:
    """Yield why the verdict of one result means nothing, or the opposite."""
    name, generated = canonical_name(result.name), case.generated
    verdict = result.verdicts.org if result.verdicts else result.verdict
    actions = generated.actions if generated else None
    if name == ACTIONS and verdict is Verdict.PASS and actions and parse_actions(result.expected) == ():
        taken = ", ".join(action.name for action in actions)
        yield Doubt("empty-actions", f"the org passes an empty list of actions although the agent took {taken}")
    if name in _COMPARISONS and _TEMPLATE.fullmatch(result.actual.strip()):
        text = f"{result.name} compared the text {result.actual.strip()[:100]!r}: the org did not resolve the reference"
        yield Doubt("unresolved-reference", text)
    refuses = generated is not None and is_refusal(generated.outcome)
    is_expected = any(canonical_name(rated.name) == OUTCOME and rated.verdict is Verdict.PASS for rated in case.results)
    if name in _REFUSAL_METRICS and verdict is Verdict.FAILURE and refuses and is_expected:
        text = f"{result.name} failed an answer that {OUTCOME} passed, as it does if the agent is right to refuse"
        yield Doubt("right-refusal", text)


def _changed_verdicts(run: Run, earlier: Sequence[Run]) -> Iterator[Doubt]:
    """Yield the ratings that passed in some runs of the same definition and failed in others."""
    seen: defaultdict[tuple[int, str], Counter[Verdict]] = defaultdict(Counter)
    for past_run in (run, *earlier):
        for case in past_run.cases:
            for result in case.results:
                name = canonical_name(result.name)
                verdict = result.verdicts.org if result.verdicts else result.verdict
                if name in OWN and verdict in DECIDED:
                    seen[case.number, name][verdict] += 1
    runs = len(earlier) + 1
    for (number, name), verdicts in sorted(seen.items()):
        if len(verdicts) > 1:
            passed, failed = verdicts[Verdict.PASS], verdicts[Verdict.FAILURE]
            where = f"the last {runs} runs of this definition" if earlier else "the iterations of this run"
            yield Doubt("changing-verdict", f"{name} passed {passed} and failed {failed} times in {where}", number)
