"""The first page: which cases broke since an earlier state, why, by whose fault, and since which commit."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.runs.change_bases import WORDS
from evalmeta.api.runs.finding import is_run_id
from evalmeta.api.runs.recent_changes import changes_since
from evalmeta.errors import UsageError
from evalmeta.model.changes import ChangedCase, Changes, Fault
from evalmeta.model.evaluation import all_tags
from evalmeta.report.case_differences import turn_differences
from evalmeta.report.changes import FAULT_MEANINGS, branches_text, cases_text, commit_text, headline, onset_text
from evalmeta.report.details import all_utterances, exchange_of, exchanges, not_passed
from evalmeta.store.case_lists import case_history
from evalmeta.store.run_lists import distinct_values, runs_without_tags
from evalmeta.viewer.memory import Memory
from evalmeta.viewer.pages import Page, Query, Source, text_of
from evalmeta.viewer.run_states import ALL_REMOTE, read_states
from evalmeta.viewer.tables import Column, Table, layout_of, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalmeta.model.changes import Cause
    from evalmeta.model.run import CaseResult, TestResult
    from evalmeta.store.run_lists import ListedRun

_SHOWN_COMMITS: Final = 10
_DAY_SECONDS: Final = 86_400
_FILTERS: Final = ("since", "other", "branch", "tag")
_MINUTE_SECONDS: Final = 60
_KEPT: Final[Memory[Changes]] = Memory(8)
_KEPT_OF_TESTS: Final[Memory[Changes]] = Memory(8)
_LOOKS: Final = {Fault.AGENT: "failure", Fault.INFRASTRUCTURE: "error", Fault.JUDGE: "undecided"}


class Badge(NamedTuple):
    """Whose fault it is that cases do not pass, in a few words, with the class of its colours and what it means."""

    look: str
    text: str
    meaning: str

    @classmethod
    def of(cls, change: Cause | ChangedCase) -> Badge:
        """Return the badge of a cause or of a case; `new case` for one that was never judged before."""
        fault, badge = change.fault, change.badge or "new case"
        if fault is None:
            return cls("measured", badge, "")
        text = badge if badge == fault else f"{fault}: {badge}"
        return cls(_LOOKS.get(fault, "measured"), text, FAULT_MEANINGS[fault])


class CaseChange(NamedTuple):
    """What the page of a case that does not pass says of it: the fault, and since when, empty if that is not known."""

    change: ChangedCase
    badge: Badge
    since: str


class CauseRow(NamedTuple):
    """A cause in the list: an id for its row, its fault, its cases and since when they do not pass, in words."""

    id: str
    cause: Cause
    badge: Badge
    cases: str
    since: str
    is_chosen: bool


class Preview(NamedTuple):
    """What the page shows of the chosen cause: its first case, now and before.

    Attributes:
        others: the other cases of the cause.
        result: its first result that did not pass; None if the case ended in an error.
        expected_before: what this result expected before; None if that is not known, or the same.
        turn: the turn that the result judges, and `turns` their number.
        asked: the utterance of this turn, or all of them.
        answers: the answers of this turn before and now; empty if they are not known.
        command: what runs the case again.
    """

    row: CauseRow
    case: ChangedCase
    others: Sequence[ChangedCase]
    result: TestResult | None
    expected_before: str | None
    turn: int
    turns: int
    asked: str
    answers: tuple[str, str]
    command: str


CHANGED_COLUMNS: Final[tuple[Column[ChangedCase], ...]] = (
    Column("Change", "text", lambda case: case.comparison.standing.value, "words"),
    Column("Test", "path", lambda case: case.test),
    Column("Case", "changed_number", lambda case: case, "number", plain=lambda case: case.comparison.number),
    Column("Utterance", "long_text", lambda case: all_utterances(case.result), "wide"),
    Column("Why", "long_text", lambda case: case.reason, "wide dim"),
    Column("Fault", "text", lambda case: case.fault.value if case.fault else "", "words"),
    Column("Kind", "text", lambda case: "" if case.badge == case.fault else case.badge, "words"),
    Column("Since", "time", lambda case: case.onset and case.onset.first.started),
    Column("Commit", "text", lambda case: case.onset.first.revision if case.onset else "", is_extra=True),
    Column("Run", "text", lambda case: case.now.run_id, is_extra=True),
)


def changed_page(source: Source, query: Query) -> Page:
    """Return the cases that changed as a table; the parameters are those of `changes_page`."""
    table = changed_cases(source, query)
    here = {name: text_of(query, name) for name in _FILTERS}
    values = {"cases": table, "back": "changes", "here": here, "is_first": True}
    return Page("changed.html.j2", "Cases that changed", values, command=_command(query))


def changed_cases(source: Source, query: Query) -> Table[ChangedCase]:
    """Return the cases that broke, are suspect, were fixed, or are new and do not pass."""
    base, tag = text_of(query, "other") or text_of(query, "since"), text_of(query, "tag")
    found = _changes(source, base, text_of(query, "branch"), time.time())
    given = {name: value for name in _FILTERS if (value := text_of(query, name))}
    layout = layout_of(query, "changed", given, CHANGED_COLUMNS, sheet="changed.csv")
    rows = sorted_rows((found.of_tag(tag) if tag else found).known, CHANGED_COLUMNS, layout)
    return Table(CHANGED_COLUMNS, rows, layout=layout)


def _command(query: Query) -> str:
    """Return the command that shows the same in a terminal."""
    values = ("--since", text_of(query, "other") or text_of(query, "since")), ("--branch", text_of(query, "branch"))
    return shlex.join(["evalmeta", "changes", *(word for option in values if option[1] for word in option)])


def changes_page(source: Source, query: Query) -> Page:
    """Return the page of what changed; `since` or `other` says what the tests are compared with."""
    word, other, now = text_of(query, "since"), text_of(query, "other"), time.time()
    branch, base, problem = text_of(query, "branch"), other or word, ""
    try:
        found = _changes(source, base, branch, now)
    except UsageError as error:
        found, problem = Changes(base), str(error)
    every, tag = found, text_of(query, "tag")
    untagged, left = 0, 0
    if tag:
        untagged = len(runs_without_tags(source.database, sorted({case.now.run_id for case in every.known})))
        left = every.still + every.otherwise + every.new_cases - len(every.new)
        found = every.of_tag(tag)
    chosen = text_of(query, "chosen")
    broken, suspects = ([*_rows(group, chosen, now)] for group in (found.broken, found.suspects))
    rows = [*broken, *suspects]
    if rows and not any(row.is_chosen for row in rows):
        first = rows[0]._replace(is_chosen=True)
        broken, suspects = ([first, *broken[1:]], suspects) if broken else (broken, [first, *suspects[1:]])
        rows = [*broken, *suspects]
    preview = next((_preview(source, row) for row in rows if row.is_chosen), None)
    faults = [(fault, found.faults[fault], meaning) for fault, meaning in FAULT_MEANINGS.items()]
    values = {
        "found": found,
        "headline": headline(found, now),
        "problem": problem,
        "words": WORDS,
        "word": word,
        "other": other,
        "tag": tag,
        "tags": _tags(every),
        "untagged": untagged,
        "left": left,
        "here": {"since": word, "other": other, "tag": tag, "branch": branch},
        "branch": branch,
        "branches": _branches(source, every, branch),
        "branches_text": branches_text(found),
        "commits": [(commit, commit_text(commit)) for commit in reversed(found.commits[-_SHOWN_COMMITS:])],
        "more_commits": max(0, len(found.commits) - _SHOWN_COMMITS),
        "faults": faults,
        "groups": [("", broken), ("Suspect: chance may be the reason", suspects)],
        "preview": preview,
    }
    return Page("changes.html.j2", "Changes", values, command=_command(query), live=True)


def change_of(source: Source, run: ListedRun, number: int, passed: str) -> CaseChange | None:
    """Return how a case of a run became worse, as the first page says it; None for a run that is not the newest.

    If the case failed before the first page's base too, it is compared with the run that it `passed` last.
    """
    now = time.time()
    for base in dict.fromkeys(("", passed)):
        for case in _changes(source, base, run.branch, now, test=run.definition).worse:
            if (case.now.run_id, case.now.org_url, case.comparison.number) == (run.id, run.org_url, number):
                return CaseChange(case, Badge.of(case), onset_text(case, now))
    return None


def newest_changes(source: Source) -> Mapping[tuple[str, str, int], CaseChange]:
    """Return how cases became worse that the first page lists, by the org and id of their runs, and their number."""
    now = time.time()
    worse = _changes(source, "", "", now).worse
    return {
        (case.now.org_url, case.now.run_id, case.comparison.number): CaseChange(
            case, Badge.of(case), onset_text(case, now)
        )
        for case in worse
    }


def _tags(found: Changes) -> list[str]:
    """Return the tags of the cases that changed, in order; not more than a list can show."""
    tags = Counter(tag for case in found.known for tag in all_tags(case.result.tags, case.result.metadata))
    return sorted(tag for tag, _ in tags.most_common(limits.VIEW_ROWS))


def _branches(source: Source, found: Changes, chosen: str) -> list[str]:
    """Return the branches to choose from; none if the newest results are of one branch that nobody chose."""
    known = distinct_values(source.database, "branch", user=source.user) if chosen or len(found.branches) > 1 else []
    return sorted({*known, chosen} - {""})


def _changes(source: Source, base: str, branch: str, now: float, *, test: str = "") -> Changes:
    """Return what changed in all tests, or in one.

    It is computed again when runs start, end or get results, and for times when they pass.
    """
    is_lasting = base in {"", *WORDS} or is_run_id(base)
    span, kept = _DAY_SECONDS if is_lasting else _MINUTE_SECONDS, _KEPT_OF_TESTS if test else _KEPT
    states = read_states(source.database).of(source.user), *source.database.query(ALL_REMOTE)
    key = (source.project.root, source.database.name, base, test, branch, source.user.id, now // span, *states)
    return kept.find(
        key,
        lambda: changes_since(
            source.project, source.database, base, test=test, branch=branch, user=source.user, now=now
        ),
    )


def _rows(causes: Sequence[Cause], chosen: str, now: float) -> Iterator[CauseRow]:
    for cause in causes:
        first = cause.cases[0]
        row_id = f"{first.now.run_id}-{first.comparison.number}"
        since = onset_text(cause, now)
        yield CauseRow(row_id, cause, Badge.of(cause), cases_text(cause.cases), since, row_id == chosen)


def _preview(source: Source, row: CauseRow) -> Preview:
    case, *others = row.cause.cases
    result = next(iter(not_passed(case.result)), None) if case.result.error is None else None
    turns = len(exchanges(case.result))
    turn = exchange_of(case.result, result).turn if result else turns
    earlier = _earlier(source, case)
    asked = exchanges(case.result)[turn - 1].utterance if turns > 1 else all_utterances(case.result)
    answers = _answer(earlier, turn), _answer(case.result, turn)
    command = f"{again_command(case.test)} {case.comparison.number}"
    before = _expected_before(earlier, case.result, result)
    return Preview(row, case, others[: limits.VIEW_ROWS], result, before, turn, turns, asked, answers, command)


def _expected_before(earlier: CaseResult | None, now: CaseResult, result: TestResult | None) -> str | None:
    """Return what a result of a case expected in an earlier result of the case, if it was something else."""
    turns = turn_differences(earlier, now) if earlier and result else []
    pairs = (pair for turn in turns for pair in turn.expectations if pair.after is result and pair.expects_another)
    return next((pair.before.expected for pair in pairs if pair.before), None)


def again_command(test: str) -> str:
    """Return the command that runs a case again, up to its number; the name of a test in a file is a path."""
    words = ["evalmeta", "run", test] if "." in test else ["evalmeta", "test", "run", "--api-name", test]
    return shlex.join([*words, "--case"])


def _earlier(source: Source, case: ChangedCase) -> CaseResult | None:
    """Return the result of a case in the run that it is compared with; None if it is not in this store."""
    before, number = case.before, case.comparison.before
    if before is None or before.org_url or number is None:
        return None
    return next((listed.case for listed in case_history(source.database, [before.run_id], number.number)), None)


def _answer(case: CaseResult | None, turn: int) -> str:
    turns = exchanges(case)[turn - 1 : turn] if case else []
    return next((exchange.generated.outcome for exchange in turns if exchange.generated), "")
