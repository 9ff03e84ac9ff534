"""The coverage of agents by tests, as lines for people, as JSON, Markdown and HTML."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from evalmeta.model.agent_parts import HUMAN, PART_KINDS
from evalmeta.model.coverage import share_of
from evalmeta.report.comparison import StyledLine
from evalmeta.report.text import aligned, and_more, clean, count, escape_unsafe, one_line, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalmeta.model.coverage import AgentCoverage, PartCoverage
    from evalmeta.model.json_value import JsonObject

_NAME_CHARS: Final = 60
_SHOWN_PARTS: Final = 10
_LACKS: Final = {"used": "none of which uses it", "not used": "all of which use it"}
TITLES: Final = ("state", "part", "cases", "runs", "place")
_KIND_TITLES: Final = {"topic": "Topics", "action": "Actions", "transition": "Transitions", "guard": "Guards"}


def render(name: str, agents: Sequence[AgentCoverage]) -> str:
    """Return the coverage of agents in one of `FORMATS`; the text ends with a line break."""
    return _RENDERERS[name](agents)


def headline(coverage: AgentCoverage) -> str:
    """Return `Library_Desk: 66.66 % of 12 parts are covered (1 test, 4 cases)`."""
    counted = f"{count(coverage.tests, 'test')}, {count(coverage.cases, 'case')}"
    name = one_line(coverage.agent, chars=_NAME_CHARS)
    return f"{name}: {percent(coverage.share)} of {count(len(coverage.parts), 'part')} are covered ({counted})"


def notes(coverage: AgentCoverage) -> Iterator[str]:
    """Yield when the parts were listed, what does not count, and what runs have shown that no test covers."""
    if coverage.listed_at is not None:
        from evalmeta.report.html import time_text

        yield f"Its topics and tools are those that it listed on {time_text(coverage.listed_at)}"
    if coverage.is_outdated:
        yield "Its settings or its files have changed since then: run evalmeta coverage again"
    for why, number in coverage.not_counted.items():
        yield f"{count(number, 'case')} {'does' if number == 1 else 'do'} not count: {why}"
    seen = [part_name(row) for row in coverage.parts if row.seen and not row.cases]
    if seen:
        yield f"Seen in runs, without a test: {and_more(seen, _SHOWN_PARTS)}"
    if not coverage.runs:
        yield "No run of its tests is known here, so the column of runs is empty"


def tables(coverage: AgentCoverage) -> Iterator[tuple[str, Sequence[tuple[bool, tuple[str, ...]]]]]:
    """Yield the title of each kind of parts that the agent has, and whether each part is covered, with its cells.

    The titles of the cells are `TITLES`.
    """
    for kind in PART_KINDS:
        if rows := coverage.of_kind(kind):
            covered = sum(row.is_covered for row in rows)
            title = f"{_KIND_TITLES[kind]}: {covered:,} of {len(rows):,} ({percent(share_of(rows))})"
            yield title, [(row.is_covered, _cells(row)) for row in rows]


def part_name(row: PartCoverage) -> str:
    """Return a part as people read it, such as `loans.renew` or `entrance -> fees`."""
    part = row.part
    if part.kind == "transition":
        target = "a person" if part.name == HUMAN else part.name
        return one_line(f"{part.topic} -> {target}", chars=_NAME_CHARS)
    name = f"{part.topic}.{part.name}" if part.topic else part.name
    return one_line(name, chars=_NAME_CHARS)


def cases_text(row: PartCoverage) -> str:
    """Return how many cases cover a part, or why it is not covered."""
    if row.cases:
        return ", ".join([count(len(row.cases), "case"), *(_LACKS[side] for side in row.lacks)])
    if row.others:
        return f"no case that counts, {len(row.others):,} that {'does' if len(row.others) == 1 else 'do'} not"
    return "no case"


def coverage_lines(coverage: AgentCoverage) -> Iterator[StyledLine]:
    """Yield the lines of an agent: the parts of each kind, and what covers them."""
    yield StyledLine("title", headline(coverage))
    for title, rows in tables(coverage):
        yield StyledLine("plain", "")
        yield StyledLine("plain", title)
        for (is_covered, _), line in zip(rows, aligned([cells for _, cells in rows]), strict=True):
            yield StyledLine("plain" if is_covered else "worse", f"  {line}")
    yield StyledLine("plain", "")
    for note in notes(coverage):
        yield StyledLine("plain", note)


def _cells(row: PartCoverage) -> tuple[str, ...]:
    state = "covered" if row.is_covered else "partly" if row.cases else "open"
    seen = f"seen {row.seen:,} times" if row.seen > 1 else "seen once" if row.seen else ""
    return state, part_name(row), cases_text(row), seen, clean(PurePath(row.part.place).name)


def coverage_json(coverage: AgentCoverage) -> JsonObject:
    """Return the coverage of an agent as JSON values; shares are from 0 to 1."""
    return {
        "agent": coverage.agent,
        "coverage": coverage.share,
        "tests": coverage.tests,
        "cases": coverage.cases,
        "notCounted": dict(coverage.not_counted),
        "runs": coverage.runs,
        "kinds": {kind: share_of(rows) for kind in PART_KINDS if (rows := coverage.of_kind(kind))},
        "parts": [_part_json(row) for row in coverage.parts],
    }


def _part_json(row: PartCoverage) -> JsonObject:
    part = row.part
    return {
        "kind": part.kind,
        "name": part.name,
        "topic": part.topic or None,
        "place": part.place or None,
        "covered": row.is_covered,
        "lacks": list(row.lacks),
        "cases": list(row.cases),
        "casesNotCounted": list(row.others),
        "seen": row.seen,
    }


def _human(agents: Sequence[AgentCoverage]) -> str:
    return "\n\n".join("\n".join(line.text for line in coverage_lines(agent)) for agent in agents) + "\n"


def _json(agents: Sequence[AgentCoverage]) -> str:
    body = {"agents": [coverage_json(agent) for agent in agents]}
    return escape_unsafe(json.dumps(body, indent=2, ensure_ascii=False)) + "\n"


def _markdown(agents: Sequence[AgentCoverage]) -> str:
    return "\n".join(line for agent in agents for line in _markdown_lines(agent)) + "\n"


def _markdown_lines(coverage: AgentCoverage) -> Iterator[str]:
    from evalmeta.report.github import prose

    yield f"### {prose(headline(coverage))}"
    for title, rows in tables(coverage):
        yield f"\n{prose(title)}\n"
        yield f"| {' | '.join(TITLES)} |"
        yield "|---|---|---|---|---|"
        yield from (f"| {' | '.join(map(prose, cells))} |" for _, cells in rows)
    yield from (f"\n{prose(note)}" for note in notes(coverage))
    yield ""


def _html(agents: Sequence[AgentCoverage]) -> str:
    from evalmeta.report.html import stand_alone

    shown = [(headline(agent), [*notes(agent)], [*tables(agent)]) for agent in agents]
    return stand_alone("coverage.html.j2", agents=shown, titles=TITLES)


_RENDERERS: Final[Mapping[str, Callable[[Sequence[AgentCoverage]], str]]] = {
    "human": _human,
    "json": _json,
    "markdown": _markdown,
    "html": _html,
}
FORMATS: Final = tuple(_RENDERERS)
