"""The page with the coverage of the project's agents: which of their parts no test covers."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from evalmeta.api.agent_inventories import listing_agents
from evalmeta.api.coverage import measure_known_coverage
from evalmeta.errors import EvalmetaError, NotFound
from evalmeta.package.agent_files import agents_of
from evalmeta.report.coverage import TITLES, headline, notes, tables
from evalmeta.viewer.pages import Page, Query, Source, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.coverage import AgentCoverage


def coverage_page(source: Source, query: Query) -> Page:
    """Return the page of an agent, or of all of them.

    A page runs no code of agents, because that could hang: those that are not in files have the tools that they listed
    when the command asked them last.
    """
    agent = text_of(query, "agent")
    agents: Sequence[AgentCoverage] = ()
    left_out: Sequence[str] = ()
    known: list[str] = []
    problem = ""
    try:
        if source.user.is_admin:
            known = [*agents_of(source.project).agents(), *listing_agents(source.project)]
        if agent and agent not in known:
            raise NotFound(f"no agent {agent!r} is in the files of the project, or lists its tools")
        if known:
            agents, _, left_out = measure_known_coverage(source.project, agent)
    except EvalmetaError as error:
        problem = str(error)
    values = {
        "agents": [(one.agent, headline(one), [*notes(one)], [*tables(one)]) for one in agents],
        "names": known,
        "agent": agent,
        "problem": problem,
        "titles": TITLES,
        "commands": [shlex.join(["evalmeta", "coverage", name]) for name in left_out],
    }
    command = shlex.join(["evalmeta", "coverage", *([agent] if agent else [])])
    return Page("coverage.html.j2", "Coverage", values, command=command)
