"""The page with the coverage of the project's agents: which of their parts no test covers."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from evalmeta.api.coverage import measure_coverage
from evalmeta.errors import EvalmetaError, NotFound
from evalmeta.package.agent_files import agents_of
from evalmeta.report.coverage import TITLES, headline, notes, tables
from evalmeta.viewer.pages import Page, Query, Source, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.coverage import AgentCoverage


def coverage_page(source: Source, query: Query) -> Page:
    """Return the page of an agent in the files of the project, or of all of them; other agents are not asked."""
    agent = text_of(query, "agent")
    known = agents_of(source.project).agents() if source.user.is_admin else []
    agents: Sequence[AgentCoverage] = ()
    problem = ""
    try:
        if agent and agent not in known:
            raise NotFound(f"no agent {agent!r} is in the files of the project")
        agents = measure_coverage(source.project, agent).agents if known else ()
    except EvalmetaError as error:
        problem = str(error)
    values = {
        "agents": [(one.agent, headline(one), [*notes(one)], [*tables(one)]) for one in agents],
        "names": known,
        "agent": agent,
        "problem": problem,
        "titles": TITLES,
    }
    command = shlex.join(["evalmeta", "coverage", *([agent] if agent else [])])
    return Page("coverage.html.j2", "Coverage", values, command=command)
