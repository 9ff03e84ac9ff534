"""The pages and actions by name, with their paths below `/view`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.viewer.case import case_page
from evalmeta.viewer.changes import accept, acceptance_page, mark
from evalmeta.viewer.compare import compare_page
from evalmeta.viewer.org import job_page, org_page
from evalmeta.viewer.run import one_run_page, suite_page
from evalmeta.viewer.runs import runs_page
from evalmeta.viewer.tests import tests_page
from evalmeta.viewer.trends import trends_page

if TYPE_CHECKING:
    from evalmeta.viewer.pages import Action, MakePage


class PageRow(NamedTuple):
    """A page: its path, how it is made, and the section of the navigation to which it belongs."""

    path: str
    make: MakePage
    section: str


class ActionRow(NamedTuple):
    """Something that a form does: the path that it is sent to, and the function."""

    path: str
    do: Action


PAGES: Final[dict[str, PageRow]] = {
    "tests": PageRow("", tests_page, "tests"),
    "runs": PageRow("/runs", runs_page, "runs"),
    "run": PageRow("/runs/{run}", one_run_page, "runs"),
    "suite": PageRow("/suites/{suite}", suite_page, "runs"),
    "case": PageRow("/runs/{run}/cases/{number}", case_page, "runs"),
    "acceptance": PageRow("/runs/{run}/cases/{number}/accept", acceptance_page, "runs"),
    "compare": PageRow("/compare", compare_page, "compare"),
    "trends": PageRow("/trends", trends_page, "trends"),
    "org": PageRow("/org", org_page, "org"),
    "job": PageRow("/org/jobs/{job}", job_page, "org"),
}
ACTIONS: Final[dict[str, ActionRow]] = {
    "mark": ActionRow("/runs/{run}/cases/{number}/mark", mark),
    "accept": ActionRow("/runs/{run}/cases/{number}/accept", accept),
}
SECTION_OF: Final = {name: row.section for name, row in PAGES.items()}
