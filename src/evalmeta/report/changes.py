"""What changed since an earlier state of the tests, as lines for people, as Markdown and as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from evalmeta.model.changes import Fault, Onset
from evalmeta.model.run import ErrorOrigin
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.report.causes import badge_text
from evalmeta.report.comparison import Style, StyledLine
from evalmeta.report.text import and_more, attributes_json, count, number_ranges, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.changes import Cause, ChangedCase, Changes, Moment
    from evalmeta.model.json_value import JsonObject

FAULT_MEANINGS: Final = {
    Fault.AGENT: "answers became worse",
    Fault.INFRASTRUCTURE: "the agent did not answer",
    Fault.JUDGE: "a rater failed or judges otherwise",
    Fault.TEST: "the test itself changed",
}
"""What each fault means, in the order in which they are shown."""
_DAY_SECONDS: Final = 86_400.0
_COMMIT_CHARS: Final = 7
_SHOWN_COMMITS: Final = 10
_SHOWN_TESTS: Final = 5
# What a commit of the tests or of the agent may be the reason for.
_OF_COMMITS: Final = frozenset[str]({Fault.AGENT, Fault.TEST, ErrorOrigin.CRASH, ErrorOrigin.INVALID})


def moment_text(time: float, now: float) -> str:
    """Return a time as `today 09:19`, `yesterday 09:19` or `25 November 2026 09:19` (UTC)."""
    moment, days = datetime.fromtimestamp(time, UTC), int(now // _DAY_SECONDS) - int(time // _DAY_SECONDS)
    day = {0: "today", 1: "yesterday"}.get(days) or moment.strftime("%d %B %Y").lstrip("0")
    return f"{day} {moment:%H:%M}"


def headline(changes: Changes, now: float) -> str:
    """Return `10 cases broke since yesterday 09:19`, what is not certain if none did, or why nothing can be said."""
    if changes.newest is None:
        return "No test has run yet"
    if not changes.compared:
        return "There is nothing to compare with"
    since = moment_text(changes.since, now) if changes.since else changes.base
    if changes.broken_cases:
        return f"{count(changes.broken_cases, 'case')} broke since {since}"
    suspects, new = changes.suspect_cases, changes.new_cases
    parts = [f"No case broke{' for certain' if suspects else ''} since {since}"]
    if suspects:
        parts.append(f"{suspects:,} {'is' if suspects == 1 else 'are'} suspect")
    if new:
        parts.append(f"{count(new, 'new case')} {'does' if new == 1 else 'do'} not pass")
    return "; ".join(parts)


def branches_text(changes: Changes) -> str:
    """Return `branches main (3 tests), fix (1 test)`, of which the newest results are; empty if none is known."""
    if not any(branch for branch, _ in changes.branches):
        return ""
    if len(changes.branches) == 1:
        return f"branch {one_line(changes.branches[0][0])}"
    named = [f"{one_line(branch) or '(not known)'} ({count(tests, 'test')})" for branch, tests in changes.branches]
    return f"branches {and_more(named, _SHOWN_TESTS)}"


def commits_text(changes: Changes) -> str:
    """Return the commits that were tested, and how many runs have an unknown one; empty if there is nothing to say."""
    parts = []
    if changes.commits:
        named = [commit_text(commit) for commit in reversed(changes.commits)]
        parts.append(f"{count(len(named), 'commit')} tested: {and_more(named, _SHOWN_COMMITS)}")
    if changes.unknown_commits:
        parts.append(f"the commit of {count(changes.unknown_commits, 'run')} is not known")
    return "; ".join(parts)


def commit_text(commit: Moment) -> str:
    """Return `9c1f0aa "Remove tracking tool"`."""
    name = commit.revision[:_COMMIT_CHARS]
    return f'{name} "{one_line(commit.subject)}"' if commit.subject else name


def onset_text(cause: Cause | ChangedCase, now: float) -> str:
    """Return since when cases do not pass: the commit if it can be the reason, else the time; empty if not known."""
    if (onset := cause.onset) is None:
        return ""
    first, before = onset.first, onset.before
    runs = f", {onset.runs} runs in a row" if onset.runs > 1 else ""
    when = moment_text(first.started, now)
    can_be_commit = not _OF_COMMITS.isdisjoint({cause.fault, cause.badge})
    if not can_be_commit or (before and before.revision and before.revision == first.revision):
        return f"since {when}{'' if before else ' or before it'}{runs}"
    if not first.revision:
        return f"since {when}, the commit is not known{runs}"
    if onset.follows_parent:
        uncommitted = "" if onset.is_one_commit else " or a change that was not committed"
        return f"first in {commit_text(first)}{uncommitted}{runs}"
    after = f" or a commit after {before.revision[:_COMMIT_CHARS]}" if before and before.revision else " or before it"
    return f"first in {commit_text(first)}{after}{runs}"


def cases_text(cases: Sequence[ChangedCase]) -> str:
    """Return `tests/orders.yaml cases 1-4, tests/refunds.yaml case 1`."""
    numbers: dict[str, list[int]] = {}
    for case in cases:
        numbers.setdefault(case.test, []).append(case.comparison.number)
    named = [
        f"{one_line(test)} {'case' if len(own) == 1 else 'cases'} {number_ranges(sorted(own))}"
        for test, own in numbers.items()
    ]
    return and_more(named, _SHOWN_TESTS)


def change_lines(changes: Changes, now: float) -> Iterator[StyledLine]:
    """Yield the lines of a terminal."""
    yield StyledLine("title", headline(changes, now))
    if not changes.compared:
        yield from _others(changes)
        return
    yield StyledLine("plain", f"  compared with {changes.base}")
    if len(changes.branches) > 1 and (branches := branches_text(changes)):
        yield StyledLine("plain", f"  the newest results are of the {branches}")
    if commits := commits_text(changes):
        yield StyledLine("plain", f"  {commits}")
    if changes.broken:
        faults = changes.faults
        yield StyledLine("plain", "  " + ", ".join(f"{fault} {faults[fault]}" for fault in FAULT_MEANINGS))
    for cause in changes.broken:
        yield from _cause_lines(cause, now, style="worse")
    if changes.suspects:
        yield StyledLine("plain", "")
        yield StyledLine("plain", "Suspect: chance may be the reason")
        for cause in changes.suspects:
            yield from _cause_lines(cause, now, style="plain")
    yield from _summary_lines(changes)
    yield from _others(changes)


def _summary_lines(changes: Changes) -> Iterator[StyledLine]:
    if changes.new:
        more = ", and others" if changes.new_cases > len(changes.new) else ""
        text = f"{count(changes.new_cases, 'new case')} not passing: {cases_text(changes.new)}{more}"
        yield StyledLine("worse", text)
    if changes.fixed:
        yield StyledLine("better", f"{count(len(changes.fixed), 'case')} fixed: {cases_text(changes.fixed)}")
    if changes.still:
        yield StyledLine("plain", f"{count(changes.still, 'other case')} not passing, as before")
    if changes.otherwise:
        yield StyledLine(
            "plain", f"{count(changes.otherwise, 'other case')} not passing, for another reason than before"
        )


def _cause_lines(cause: Cause, now: float, *, style: Style) -> Iterator[StyledLine]:
    yield StyledLine("plain", "")
    yield StyledLine(style, f"  {len(cause.cases):>4}  {badge_text(cause)}: {one_line(cause.text, chars=300)}")
    yield StyledLine("plain", f"        {cases_text(cause.cases)}")
    if since := onset_text(cause, now):
        yield StyledLine("plain", f"        {since}")


def _others(changes: Changes) -> Iterator[StyledLine]:
    reasons: dict[str, list[str]] = {}
    for test, reason in changes.not_compared:
        reasons.setdefault(reason, []).append(one_line(test))
    for reason, tests in reasons.items():
        text = f"Not compared, because {reason}: {and_more(tests, _SHOWN_TESTS)}"
        yield StyledLine("plain", text)


def changes_json(changes: Changes) -> JsonObject:
    """Return what changed as JSON values."""
    return {
        "base": changes.base,
        "since": None if changes.since is None else to_timestamp(changes.since),
        "newest": None if changes.newest is None else to_timestamp(changes.newest),
        "commits": [_commit_json(commit) for commit in changes.commits],
        "runsWithUnknownCommit": changes.unknown_commits,
        "brokenCases": changes.broken_cases,
        "faults": {fault.value: changes.faults[fault] for fault in FAULT_MEANINGS},
        "broken": [_cause_json(cause) for cause in changes.broken],
        "suspects": [_cause_json(cause) for cause in changes.suspects],
        "fixed": [_case_json(case) for case in changes.fixed],
        "newFailures": changes.new_cases,
        "firstNewFailures": [_case_json(case) for case in changes.new],
        "stillFailing": changes.still,
        "stillFailingOtherwise": changes.otherwise,
        "branches": [{"branch": branch, "tests": tests} for branch, tests in changes.branches],
        "compared": [*changes.compared],
        "notCompared": [{"test": test, "reason": reason} for test, reason in changes.not_compared],
    }


def _cause_json(cause: Cause) -> JsonObject:
    return {
        "text": cause.text,
        "fault": cause.fault.value if cause.fault else None,
        "kind": cause.badge,
        "onset": _onset_json(cause.onset),
        "cases": [_case_json(case) for case in cause.cases],
    }


def _case_json(case: ChangedCase) -> JsonObject:
    return {
        "test": case.test,
        "testNumber": case.comparison.number,
        "utterance": case.result.utterance,
        "standing": case.comparison.standing.value,
        "runId": case.now.run_id,
        "before": case.before.run_id if case.before else None,
        "reason": case.reason,
        "onset": _onset_json(case.onset),
    }


def _onset_json(onset: Onset | None) -> JsonObject | None:
    if onset is None:
        return None
    before = _commit_json(onset.before) if onset.before else None
    return {"first": _commit_json(onset.first), "before": before, "runs": onset.runs, "oneCommit": onset.is_one_commit}


def _commit_json(moment: Moment) -> JsonObject:
    started = {"startTime": to_timestamp(moment.started)}
    return {**attributes_json(moment, "run_id", "branch", "revision", "subject", "parent", "is_clean"), **started}
