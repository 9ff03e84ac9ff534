"""Suspect cases: how often they must be asked again, and what the new answers show.

A suspect case passed at least once in the baseline, and none of its answers passed now. It is asked again until one
answer passes, which acquits it, or until enough answers failed. That is the case as soon as an unchanged case would
fail so often with a chance of at most 0.25 % over all cases of the command, and after 20 more failures in any case: a
case that passes every other time fails them with a chance of one in a million. The chance that an unchanged case fails
n answers in a row is predicted from the baseline: the pass rates of a test's cases have a beta distribution, fitted by
moments, and the case's own answers before update it.

Answers that are alike within a run, such as those of an agent whose model is seeded or cached, are an exception:
asking again shows nothing. They are recognised if answers to a case differ between the runs of a baseline, and never
within one. Then only failing in several runs in a row counts.

Sources: J. G. Skellam, "A probability distribution derived from the binomial distribution by regarding the probability
of success as variable between the sets of trials", JRSS B 10 (1948); J. C. Kleinman, "Proportions with extraneous
variance", JASA 68 (1973), for the fit.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.comparison import differs_within_a_run
from evalmeta.model.comparison import SUSPECTS, CaseComparison, Comparison, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_FEWEST_ANSWERS: Final = 3
_LEVEL: Final = 0.0025
# Failing in one run after the other is another kind of alarm, which only agents can cause that answer alike in a run.
_LEVEL_OF_RUNS: Final = 0.02
# Below this pass rate, an unchanged case fails 20 times in a row with a chance of more than 1 %.
_LEAST_RATE: Final = 0.2
# How much a test's other cases say about one, in answers.
_LEAST_WEIGHT: Final = 0.02
_MOST_WEIGHT: Final = 10.0
_MOST_WEIGHT_OF_RUNS: Final = 50.0
# With this number of pairs of answers, the fitted weight and that of one answer count alike.
_PAIRS_OF_ONE: Final = 50
# The chance of only equal answers within a run, if they differed there, below which answers are alike.
_CHANCE_OF_ALIKE: Final = 0.01
# To find out, passing cases are asked again: the maximum of cases, and of questions to all of them.
_MOST_PROBED: Final = 9
_MOST_PROBES: Final = 180
_NOT_PASSING: Final = frozenset({*SUSPECTS, Standing.BROKEN})


class _Beta(NamedTuple):
    """A beta distribution of pass rates."""

    passed: float
    failed: float

    def fails_all(self, answers: int) -> float:
        """Return the chance that so many answers in a row fail."""
        total = self.passed + self.failed
        return math.prod((self.failed + place) / (total + place) for place in range(answers))


def judge_suspects(
    tests: Sequence[Comparison], subjects: Sequence[str], failing_runs: Sequence[Mapping[int, int]]
) -> list[Comparison]:
    """Return the tests of a command with what is known of their suspect cases.

    Whether answers are alike within a run is decided for all tests of a subject together. `failing_runs` has, for each
    test, in how many runs in a row before this one a case failed all answers, by number.
    """
    shared = [case for test in tests for case in test.cases if case.before and case.after]
    known = sum(case.before is not None and case.before.passed > 0 for case in shared)
    always = sum(map(_always_passed, shared))
    judged = list(tests)
    for subject in dict.fromkeys(subjects):
        places = [place for place, name in enumerate(subjects) if name == subject]
        group = [tests[place] for place in places]
        if not any(test.suspects for test in group):
            continue
        cases = [case for test in group for case in test.cases]
        if _is_alike(cases):
            prior = _fitted([case.before.observed_runs for case in cases if case.before], _MOST_WEIGHT_OF_RUNS)
            of_subject = [_judged_by_runs(tests[place], failing_runs[place], prior, always) for place in places]
        else:
            of_subject = _with_probes([_judged_by_answers(test, known) for test in group])
        for place, test in zip(places, of_subject, strict=True):
            judged[place] = test
    return judged


def _judged_by_answers(test: Comparison, number: int) -> Comparison:
    prior = _fitted([(case.before.passed, case.before.failed) for case in test.cases if case.before], _MOST_WEIGHT)
    cases = [
        _judged(replace(case, needed=_needed(case, prior, number))) if case.standing in SUSPECTS else case
        for case in test.cases
    ]
    return replace(test, cases=tuple(cases))


def _judged(case: CaseComparison) -> CaseComparison:
    again = case.again
    if again is None:
        return case
    if again.passed:
        return replace(case, standing=Standing.BACK, needed=None)
    has_failed = case.needed is not None and again.decided + again.undecided >= case.needed
    return replace(case, standing=Standing.BROKEN) if has_failed else case


def _needed(case: CaseComparison, prior: _Beta, number: int) -> int | None:
    """Return how many more answers must fail to show that a suspect case broke; None if that cannot show it."""
    before, after = case.before, case.after
    if before is None or after is None or before.passed < _LEAST_RATE * before.decided:
        return None
    own = _Beta(prior.passed + before.passed, prior.failed + before.failed)
    first = after.failed + after.undecided
    answers = range(_FEWEST_ANSWERS, limits.MAX_ANSWERS_AGAIN)
    return next((more for more in answers if number * own.fails_all(first + more) <= _LEVEL), limits.MAX_ANSWERS_AGAIN)


def _fitted(cases: Iterable[tuple[int, int]], most: float) -> _Beta:
    """Return the distribution of the cases' pass rates; it weighs as much as one answer if each case has only one."""
    # Many cases have the same answers.
    decided = {case: number for case, number in Counter(cases).items() if sum(case)}
    answers = sum(number * sum(case) for case, number in decided.items())
    passed = sum(number * case[0] for case, number in decided.items())
    if not answers:
        return _Beta(0.5, 0.5)
    rate = min(max(passed / answers, 0.5 / answers), 1 - 0.5 / answers)
    pairs = sum(number * sum(case) * (sum(case) - 1) for case, number in decided.items())
    weight = 1.0
    if pairs:
        within = sum(number * case[0] * case[1] for case, number in decided.items()) / pairs / (rate * (1 - rate))
        weight = min(max(within / max(1 - within, 1e-9), _LEAST_WEIGHT), most) ** (pairs / (pairs + _PAIRS_OF_ONE))
    return _Beta(rate * weight, (1 - rate) * weight)


def _judged_by_runs(test: Comparison, failing_runs: Mapping[int, int], prior: _Beta, number: int) -> Comparison:
    """Judge a test whose answers are alike within a run: a case breaks by failing in several runs in a row."""
    cases = []
    for case in test.cases:
        if case.standing not in SUSPECTS or not case.before:
            cases.append(case)
            continue
        if case.again and case.again.passed:
            cases.append(replace(case, standing=Standing.BACK))
            continue
        own = _Beta(prior.passed + len(case.before.decided_runs), prior.failed)
        runs = 1 + failing_runs.get(case.number, 0)
        is_broken = _always_passed(case) and number * own.fails_all(runs) <= _LEVEL_OF_RUNS
        cases.append(replace(case, standing=Standing.BROKEN) if is_broken else case)
    return replace(test, cases=tuple(cases), is_alike=True)


def _is_alike(cases: Sequence[CaseComparison]) -> bool:
    """Return whether answers to a case differ between runs, and are known never to differ within one."""
    differ = any(map(_differs_between_runs, cases)) and not differs_within_a_run(cases)
    return differ and _chance_of_alike(cases) <= _CHANCE_OF_ALIKE


def _rates_of_runs(cases: Sequence[CaseComparison]) -> dict[int, float]:
    """Return the pass rates of cases that passed in some runs of the baseline and failed in others, by their place."""
    observed = [case.before.observed_runs for case in cases if case.before]
    prior = _fitted(observed, _MOST_WEIGHT_OF_RUNS)
    differing = ((place, case.before) for place, case in enumerate(cases) if _differs_between_runs(case))
    runs = {place: before.observed_runs for place, before in differing if before}
    weight = prior.passed + prior.failed
    return {place: (prior.passed + run[0]) / (weight + sum(run)) for place, run in runs.items()}


def _chance_of_alike(cases: Sequence[CaseComparison]) -> float:
    """Return the chance that answers within a run equal the first one if they differ as those of different runs do.

    Only cases count that passed in some runs and failed in others. Suspect cases do not: they may have broken.
    """
    chance = 1.0
    for place, rate in _rates_of_runs(cases).items():
        case = cases[place]
        answers = [(run.passed, run.failed) for run in case.before.decided_runs] if case.before else []
        answers += [] if case.standing in _NOT_PASSING else [_now(case)]
        # All answers of a run pass, or fail, if the first one does.
        chance *= math.prod(rate ** max(0, passed - 1) * (1 - rate) ** max(0, failed - 1) for passed, failed in answers)
    return chance


def _with_probes(tests: Sequence[Comparison]) -> list[Comparison]:
    """Return tests of one subject with the passing cases that must be asked again to tell whether answers are alike.

    That only matters if a case broke unless they are, and answers to a case differ between runs.
    """
    cases = [case for test in tests for case in test.cases]
    has_broken = any(case.again for case in cases if case.standing is Standing.BROKEN)
    if not has_broken or differs_within_a_run(cases):
        return [*tests]
    if all(test.runs == 1 for test in tests):
        return [replace(test, may_be_noise=any(case.again for case in test.of(Standing.BROKEN))) for test in tests]
    times, first, probed = _probes(cases), 0, []
    for test in tests:
        own = enumerate(test.cases, first)
        probes = tuple((case.number, times[place]) for place, case in own if times.get(place))
        probed.append(replace(test, probes=probes))
        first += len(test.cases)
    return probed


def _probes(cases: Sequence[CaseComparison]) -> dict[int, int]:
    """Return how often to ask cases again, by their place; those that failed most often before come first."""
    rates = {
        place: rate
        for place, rate in _rates_of_runs(cases).items()
        if cases[place].standing not in _NOT_PASSING and _now(cases[place])[0]
    }
    order = sorted(rates, key=lambda place: (rates[place], place))[:_MOST_PROBED]
    asked = sum(case.again.decided for case in (cases[place] for place in order) if case.again)
    chance, times = _chance_of_alike(cases), dict.fromkeys(order, 0)
    for place, _ in zip(cycle(order), range(_MOST_PROBES - asked), strict=False):
        if chance <= _CHANCE_OF_ALIKE:
            break
        times[place] += 1
        chance *= rates[place]
    return times


def _differs_between_runs(case: CaseComparison) -> bool:
    """Return whether a case passed in some runs of the baseline and failed in others."""
    return case.before is not None and bool(case.before.runs) and min(case.before.observed_runs) > 0


def _always_passed(case: CaseComparison) -> bool:
    return case.before is not None and case.before.passed > 0 and case.before.failed == 0


def _now(case: CaseComparison) -> tuple[int, int]:
    """Return how many answers of this run passed and failed, those after asking again included."""
    sides = [side for side in (case.after, case.again) if side is not None]
    return sum(side.passed for side in sides), sum(side.failed for side in sides)
