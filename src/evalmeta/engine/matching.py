"""Match the cases of a test before and now, and say what changed in the test itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.fingerprints import ChangesOfTest, PartChange, compare_checks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evalmeta.model.baseline import KnownTest
    from evalmeta.model.comparison import CaseComparison
    from evalmeta.model.statistics import CaseCounts

    _Key = Callable[[CaseCounts], object]


def pair_cases(
    before: Iterable[CaseCounts], after: Iterable[CaseCounts]
) -> Iterator[tuple[CaseCounts | None, CaseCounts | None]]:
    """Pair the cases of two runs, each at most once.

    First those with the same number that asked the same, then those that asked the same, in order, and then those with
    the same label. At last, those with the same number of which one ended in an error before its last turn. The others
    are new (None before) or gone (None after): a case that asks something else is another case, even if it has the
    same number.
    """
    ordered, rest = sorted(after, key=_number), sorted(before, key=_number)
    left = list(ordered)
    pairs: dict[int, CaseCounts] = {}
    keys: list[_Key] = [lambda case: (case.number, _asked(case)), _asked, lambda case: case.utterance]
    for key in keys:
        _pair(rest, left, pairs, key)
    _pair_unfinished(rest, left, pairs)
    for case in ordered:
        yield pairs.get(case.number), case
    for case in rest:
        yield case, None


def _pair(rest: list[CaseCounts], left: list[CaseCounts], pairs: dict[int, CaseCounts], key: _Key) -> None:
    """Pair cases with the same key, in order, and remove them from both lists."""
    known: dict[object, list[CaseCounts]] = {}
    for case in reversed(rest):
        known.setdefault(key(case), []).append(case)
    paired = {case.number: candidates.pop() for case in left if (candidates := known.get(key(case)))}
    _take(paired, rest, left, pairs)


def _pair_unfinished(rest: list[CaseCounts], left: list[CaseCounts], pairs: dict[int, CaseCounts]) -> None:
    known = {case.number: case for case in rest}
    paired = {case.number: old for case in left if (old := known.get(case.number)) and _is_part(old, case)}
    _take(paired, rest, left, pairs)


def _take(
    paired: dict[int, CaseCounts], rest: list[CaseCounts], left: list[CaseCounts], pairs: dict[int, CaseCounts]
) -> None:
    gone = {case.number for case in paired.values()}
    rest[:] = [case for case in rest if case.number not in gone]
    left[:] = [case for case in left if case.number not in paired]
    pairs |= paired


def _number(case: CaseCounts) -> int:
    return case.number


def _asked(case: CaseCounts) -> str:
    return case.asked or case.utterance


def _is_part(old: CaseCounts, new: CaseCounts) -> bool:
    """Return whether one of the cases asked only the first turns of the other, and was never judged."""
    short, long = sorted((old, new), key=lambda case: len(_asked(case)))
    return not short.decided and _asked(long).startswith(f"{_asked(short)} / ")


def changes_of(cases: Sequence[CaseComparison], before: KnownTest, after: KnownTest) -> ChangesOfTest:
    """Return what changed in a test whose cases were compared; what is not known on both sides is left out."""
    both = [(case.before, case.after) for case in cases if case.before and case.after]
    checks = [compare_checks(old.checks, new.checks) for old, new in both]
    return ChangesOfTest(
        removed=sum(case.after is None for case in cases),
        weaker=sum(check.weaker for check in checks),
        changed=sum(check.changed for check in checks),
        new=sum(check.new for check in checks),
        parts=tuple(_part_changes(before, after)),
    )


def _part_changes(before: KnownTest, after: KnownTest) -> Iterator[PartChange]:
    old, new = before.setup, after.setup
    parts = [
        ("agent", old.agent, new.agent),
        ("rater", old.rater, new.rater),
        ("prompt of the judge", old.prompt, new.prompt),
        ("options of judging", before.options, after.options),
        ("version of evalmeta", old.evalmeta, new.evalmeta),
    ]
    changed = [PartChange(*part) for part in parts if all(part) and part[1] != part[2]]
    yield from changed
    versions = old.agent_version, new.agent_version
    if old.agent == new.agent and all(versions) and versions[0] != versions[1]:
        yield PartChange("version of the agent", *versions)
