"""The gate over many simulated commands at once: the rules of `evalmeta.engine.gate` and `suspects`, on arrays.

Arrays have the axes command, run of the baseline, case (those of the first test come first), and answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import cycle
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

from evalmeta.engine.significance import Table, permutation_worse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Flags = NDArray[np.bool_]
    Numbers = NDArray[np.float64]

MOST_ANSWERS: Final = 20
ROUNDS: Final = (1, 2, 6, 12, 20)
TOGETHER, SINGLE, SUSPECTS, RUNS_IN_A_ROW, ALIKE = 0.045, 0.0025, 0.0025, 0.02, 0.01


@dataclass(frozen=True, slots=True)
class Commands:
    """Simulated commands.

    Attributes:
        before: passed answers of each case in each run of the baseline; command x run x case.
        now: passed first answers; command x case.
        again: whether each further answer would pass; command x case x 20.
        tests: the number of tests; each has the same number of cases.
        failing_runs: in how many runs in a row before this one each case failed all answers; command x case.
    """

    before: Counts
    now: Counts
    again: Flags
    tests: int
    iterations_before: int
    iterations: int
    failing_runs: Counts


@dataclass(frozen=True, slots=True)
class Decisions:
    """What the gate decides: red commands, broken cases, and the number of further questions of each command."""

    red: Flags
    broken: Flags
    asked: Counts


def decide(commands: Commands, *, confirm: bool = True) -> Decisions:
    """Decide commands as `evalmeta test run --baseline FILE` does, with and without asking again."""
    parts = [_Test(commands, number) for number in range(commands.tests)]
    single = _single(parts)
    broken, asked = np.zeros(single.shape, bool), np.zeros(len(commands.now), np.int64)
    if confirm:
        known = (commands.before.sum(1) > 0).sum(1)
        always = (commands.before == commands.iterations_before).all(1).sum(1)
        every = _Test(replace(commands, tests=1), 0)
        suspects = (commands.before.sum(1) > 0) & (commands.now == 0) & ~single
        alike = every.is_alike()
        for part in parts:
            found, questions = part.ask(known, suspects[:, part.cases] & ~alike[:, None])
            broken[:, part.cases] |= found
            asked += questions
        passes = suspects & ~broken & ~alike[:, None] & every.enough
        unsure = every.may_be_alike() & broken.any(1) & ~passes.any(1) & ~alike
        for row in np.flatnonzero(unsure):
            questions, alike[row], differing = every.probe(int(row), suspects[row])
            asked[row] += questions
            passes[row, differing] = True
        broken &= ~alike[:, None]
        broken |= every.broken_by_runs(suspects, alike, always)
        for part in parts:
            part.uniform &= ~passes[:, part.cases].any(1)
            part.noise = part.noise_of()
        single = _single(parts)
    broken |= single
    return Decisions(_together(parts) | broken.any(1), broken, asked)


class _Test:
    def __init__(self, commands: Commands, number: int) -> None:
        size = commands.now.shape[1] // commands.tests
        self.cases = slice(number * size, (number + 1) * size)
        self.before, self.now = commands.before[:, :, self.cases], commands.now[:, self.cases]
        self.again, self.failing_runs = commands.again[:, self.cases], commands.failing_runs[:, self.cases]
        self.runs, self.each, self.iterations = self.before.shape[1], commands.iterations_before, commands.iterations
        self.mixed_before = ((self.before > 0) & (self.before < self.each)).any((1, 2))
        self.mixed_now = ((self.now > 0) & (self.now < self.iterations)).any(1)
        several = self.each > 1 or self.iterations > 1
        self.uniform = several & ~self.mixed_before & ~self.mixed_now
        self.enough = self.before.sum(1) >= 0.2 * self.runs * self.each
        self.passed_runs = (2 * self.before > self.each).sum(1)
        self.noise = self.noise_of()

    def noise_of(self) -> Numbers:
        return np.where(self.uniform, 1.0, self._noise()) if self.runs >= 3 else np.ones(len(self.now))

    def tables(self) -> tuple[Counts, Counts, Counts, Counts]:
        """Return passed and all observations of each case, before and now."""
        uniform, shape = self.uniform[:, None], self.now.shape
        passed_before = np.where(uniform, self.passed_runs, self.before.sum(1))
        all_before = np.broadcast_to(np.where(uniform, self.runs, self.runs * self.each), shape)
        passed = np.where(uniform, self.now > 0, self.now)
        return passed_before, all_before, passed, np.broadcast_to(np.where(uniform, 1, self.iterations), shape)

    def _noise(self) -> Numbers:
        total = self.runs * self.each
        rate = self.before.sum(1) / total
        flaky = (rate > 0) & (rate < 1)
        variance = self.each * rate * (1 - rate) * (total - self.each) / max(1, total - 1)
        distance = (self.before - self.each * rate[:, None]) * flaky[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            of_runs = np.nan_to_num((distance.sum(2) ** 2 / variance.sum(1)[:, None]).sum(1))
            of_cases = np.nan_to_num(np.where(flaky, (distance**2).sum(1) / variance, 0.0).sum(1))
        found = _factor(of_runs * (self.runs - 1) / self.runs, np.full(len(rate), self.runs - 1.0))
        degrees = flaky.sum(1) * self.runs * (self.each > 1)
        return np.maximum(found, _factor(of_cases, degrees.astype(float)))

    def ask(self, known: Counts, suspects: Flags) -> tuple[Flags, Counts]:
        """Return which suspects break, and how many questions are asked, in each command."""
        needed = self._needed(known, self.before.sum(1))
        failures = np.where(self.again.any(2), self.again.argmax(2), MOST_ANSWERS)
        asks = suspects & self.enough
        stops = np.minimum(np.searchsorted(ROUNDS, failures + 1), len(ROUNDS) - 1)
        asked = np.where(asks, np.minimum(np.array(ROUNDS)[stops], needed), 0).sum(1)
        return asks & (failures >= needed), asked

    @staticmethod
    def _fitted(passed: Counts, total: int, most: float) -> tuple[Numbers, Numbers]:
        """Return the mean and the weight of the distribution of pass rates."""
        answers = total * passed.shape[1]
        rate = np.clip(passed.sum(1) / answers, 0.5 / answers, 1 - 0.5 / answers)
        if total == 1:
            return rate, np.ones(len(rate))
        pairs = total * (total - 1) * passed.shape[1]
        within = (passed * (total - passed)).sum(1) / pairs / (rate * (1 - rate))
        return rate, np.clip(within / np.maximum(1 - within, 1e-9), 0.02, most) ** (pairs / (pairs + 50))

    def _needed(self, known: Counts, passed: Counts) -> Counts:
        total = self.runs * self.each
        rate, weight = self._fitted(passed, total, 10.0)
        good = (rate * weight)[:, None] + passed
        bad = ((1 - rate) * weight)[:, None] + total - passed
        chance, needed = np.ones(passed.shape), np.full(passed.shape, MOST_ANSWERS)
        for place in range(self.iterations + MOST_ANSWERS - 1):
            chance = chance * (bad + place) / (good + bad + place)
            more = place + 1 - self.iterations
            if more >= 3:
                is_enough = (known[:, None] * chance <= SUSPECTS) & (needed == MOST_ANSWERS)
                needed = np.where(is_enough, more, needed)
        return needed

    def _rates(self) -> tuple[Numbers, Flags]:
        """Return the pass rate of each case over runs, and whether it passed in some and failed in others."""
        rate, weight = self._fitted(self.passed_runs, self.runs, 50.0)
        rates = (rate[:, None] * weight[:, None] + self.passed_runs) / (weight[:, None] + self.runs)
        return rates, (self.passed_runs > 0) & (self.passed_runs < self.runs)

    def _chances(self) -> Numbers:
        """Return the chance of answers that never differ within a run, if they differed as between runs."""
        rate, differ = self._rates()
        before = (rate**self.passed_runs * (1 - rate) ** (self.runs - self.passed_runs)) ** (self.each - 1)
        now = np.where(self.now > 0, rate, np.where(self.before.sum(1) > 0, 1.0, 1 - rate)) ** (self.iterations - 1)
        return np.where(differ, before * now, 1.0).prod(1)

    def may_be_alike(self) -> Flags:
        return self._rates()[1].any(1) & ~self.mixed_before & ~self.mixed_now

    def is_alike(self) -> Flags:
        return self.may_be_alike() & (self._chances() <= ALIKE)

    def probe(self, row: int, suspects: Flags) -> tuple[int, bool, list[int]]:
        """Ask passing cases again; return how often, whether answers are alike within a run, and where they differ."""
        rates, differ = self._rates()
        rate = rates[row]
        passing = [int(case) for case in np.flatnonzero(differ[row] & (self.now[row] > 0) & ~suspects)]
        passing = sorted(passing, key=lambda case: (rate[case], case))[:9]
        chance, asked = float(self._chances()[row]), dict.fromkeys(passing, 0)
        for case, _ in zip(cycle(passing), range(180), strict=False):
            if chance <= ALIKE:
                break
            asked[case] += 1
            chance *= rate[case]
        answers = self.again[row]
        right = {case: answers[case, np.arange(times) % MOST_ANSWERS] for case, times in asked.items()}
        differing = [case for case, outcomes in right.items() if not outcomes.all()]
        return sum(asked.values()), not differing and chance <= ALIKE, differing

    def broken_by_runs(self, suspects: Flags, known_alike: Flags, number: Counts) -> Flags:
        if not known_alike.any():
            return np.zeros(suspects.shape, bool)
        rate, weight = self._fitted(self.passed_runs, self.runs, 50.0)
        bad, total = (1 - rate) * weight, weight + self.runs
        broken = np.zeros(suspects.shape, bool)
        for row in np.flatnonzero(known_alike):
            for case in np.flatnonzero(suspects[row] & (self.before[row] == self.each).all(0)):
                runs = 1 + int(self.failing_runs[row, case])
                chance = math.prod((bad[row] + place) / (total[row] + place) for place in range(runs))
                broken[row, case] = number[row] * chance <= RUNS_IN_A_ROW
        return broken


def _factor(pearson: Numbers, degrees: Numbers) -> Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = 2 / (9 * degrees)
        quantile = degrees * (1 - spread + NormalDist().inv_cdf(0.95) * np.sqrt(spread)) ** 3
        return np.where((degrees >= 1) & (pearson > quantile), np.maximum(1.0, pearson / degrees), 1.0)


def _with_noise(p_values: Numbers, noise: Numbers) -> Numbers:
    found = p_values.copy()
    normal = NormalDist()
    for place in np.flatnonzero((noise > 1) & (p_values > 0) & (p_values < 1)):
        deflated = 1 - normal.cdf(normal.inv_cdf(1 - p_values[place]) / math.sqrt(noise[place]))
        found[place] = max(found[place], deflated)
    return found


def _together(parts: list[_Test]) -> Flags:
    tests = [_with_noise(_p_values(*part.tables()), part.noise) for part in parts]
    if len(parts) == 1:
        return tests[0] < TOGETHER
    joined = (np.concatenate(side, axis=1) for side in zip(*(part.tables() for part in parts), strict=True))
    overall = _with_noise(_p_values(*joined), np.max([part.noise for part in parts], axis=0))
    return (overall < TOGETHER / 2) | (np.min(tests, axis=0) < TOGETHER / 2 / len(parts))


def _p_values(passed_before: Counts, all_before: Counts, passed: Counts, all_now: Counts) -> Numbers:
    """Return the p-value of each command; where the pass rate did not fall, 1."""
    found = np.ones(len(passed))
    falls = (passed_before / all_before).mean(1) > (passed / all_now).mean(1) + 1e-12
    sizes = np.stack([all_before[:, 0], all_now[:, 0]], axis=1)
    same = (all_before == all_before[:, :1]).all(1) & (all_now == all_now[:, :1]).all(1)
    for before, now in np.unique(sizes[falls & same], axis=0):
        rows = np.flatnonzero(falls & same & (sizes == (before, now)).all(1))
        if before == now == 1:
            broken = ((passed_before > passed)[rows]).sum(1)
            fixed = ((passed_before < passed)[rows]).sum(1)
            found[rows] = [_of_single(int(b), int(f), passed.shape[1]) for b, f in zip(broken, fixed, strict=True)]
        else:
            found[rows] = _permuted(passed_before[rows], int(before), passed[rows], int(now))
    for row in np.flatnonzero(falls & ~same):
        columns = zip(passed_before[row], all_before[row], passed[row], all_now[row], strict=True)
        found[row] = permutation_worse([Table(int(p), int(n - p), int(q), int(m - q)) for p, n, q, m in columns])
    return found


@lru_cache(maxsize=100_000)
def _of_single(broken: int, fixed: int, cases: int) -> float:
    tables = [Table(1, 0, 0, 1)] * broken + [Table(0, 1, 1, 0)] * fixed + [Table(1, 0, 1, 0)] * (cases - broken - fixed)
    return permutation_worse(tables)


@lru_cache(maxsize=1_000)
def _hypergeometric(before: int, now: int) -> Numbers:
    """Return the chance of each number of passed answers now, for each number of passed answers in all."""
    chances = np.zeros((before + now + 1, now + 1))
    for total in range(before + now + 1):
        for number in range(max(0, total - before), min(now, total) + 1):
            ways = math.comb(now, number) * math.comb(before, total - number)
            chances[total, number] = ways / math.comb(before + now, total)
    return chances


def _permuted(passed_before: Counts, before: int, passed: Counts, now: int) -> Numbers:
    """Return the chance of at most so many passed answers now, by way of characteristic functions."""
    totals, size = passed_before + passed, passed.shape[1] * now + 1
    length = 1 << (size - 1).bit_length()
    spectra = np.fft.rfft(_hypergeometric(before, now), n=length, axis=1)
    with np.errstate(divide="ignore"):
        logs = np.where(spectra == 0, -1e3, np.log(np.where(spectra == 0, 1, spectra)))
    counts = np.stack([(totals == total).sum(1) for total in range(before + now + 1)], axis=1)
    chances = np.fft.irfft(np.exp(counts.astype(float) @ logs), n=length, axis=1)
    tails = np.cumsum(np.clip(chances, 0, None), axis=1)
    return np.minimum(1.0, tails[np.arange(len(passed)), passed.sum(1)])


def _single(parts: list[_Test]) -> Flags:
    """Return the cases whose pass rate fell significantly, by Holm's and Tarone's correction over all cases."""
    sides = [np.concatenate(side, axis=1) for side in zip(*(part.tables() for part in parts), strict=True)]
    passed_before, all_before, passed, all_now = sides
    noise = np.concatenate([np.broadcast_to(part.noise[:, None], part.now.shape) for part in parts], axis=1)
    found = np.zeros(passed.shape, bool)
    for row in range(len(passed)):
        found[row] = _corrected(passed_before[row], all_before[row], passed[row], all_now[row], noise[row])
    return found


@lru_cache(maxsize=100_000)
def _tails(before: int, now: int, total: int) -> tuple[float, ...]:
    return tuple(np.cumsum(_hypergeometric(before, now)[total]).tolist())


def _corrected(passed_before: Counts, all_before: Counts, passed: Counts, all_now: Counts, noise: Numbers) -> Flags:
    columns = zip(passed_before.tolist(), all_before.tolist(), passed.tolist(), all_now.tolist(), strict=True)
    rows = [(before, now, total_before + total, total) for total_before, before, total, now in columns]
    raw = np.array([_tails(before, now, total)[number] for before, now, total, number in rows])
    left: dict[tuple[int, int, int], int] = {}
    for before, now, total, _ in rows:
        left[before, now, total] = left.get((before, now, total), 0) + 1
    found, largest = np.zeros(len(rows), bool), 0.0
    for p_value in np.unique(raw):
        sums = 0.0
        for margins, count in left.items():
            attainable = [tail for tail in _attainable(*margins) if tail <= p_value * (1 + 1e-9)]
            sums += count * attainable[-1] if count and attainable else 0.0
        largest = max(largest, min(1.0, sums))
        if largest >= SINGLE:
            break
        for place in np.flatnonzero(raw == p_value):
            before, now, total, number = rows[place]
            fell = (total - number) / before > number / now
            value = float(_with_noise(np.array([largest]), np.array([noise[place]]))[0])
            found[place] = fell and max(before, now) > 1 and value < SINGLE
            left[before, now, total] -= 1
    return found


@lru_cache(maxsize=100_000)
def _attainable(before: int, now: int, total: int) -> tuple[float, ...]:
    lowest = max(0, total - before)
    return _tails(before, now, total)[lowest : min(now, total) + 1]
