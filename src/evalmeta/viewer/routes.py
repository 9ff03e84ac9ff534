"""The pages and actions by name: their paths below `/view`, what makes them, and how they become HTML."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import report
from evalmeta.api.judging.acceptance import is_acceptable
from evalmeta.model.aggregation import coverage_of
from evalmeta.report.details import all_utterances, why_not_passed
from evalmeta.report.html import environment
from evalmeta.version import __version__
from evalmeta.viewer.case import accept, acceptance_page, case_page, mark
from evalmeta.viewer.compare import compare_page
from evalmeta.viewer.org import job_page, org_page
from evalmeta.viewer.run import one_run_page, suite_page
from evalmeta.viewer.runs import runs_page
from evalmeta.viewer.tests import tests_page
from evalmeta.viewer.trends import trends_page

if TYPE_CHECKING:
    from jinja2 import Environment

    from evalmeta.viewer.pages import Action, Links, MakePage, Page, Source


# No inline script or style, and nothing from elsewhere. Other pages must not embed these.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_STATIC: Final = Path(__file__).parent / "static"
# Reports have the same parts.
_SHARED: Final = (Path(report.__file__).parent / "templates" / "parts.css",)
_TEMPLATES: Final = Path(__file__).parent / "templates"


class PageRow(NamedTuple):
    """A page: its path, how it is made, its section of the navigation, and whether it may follow unfinished runs."""

    path: str
    make: MakePage
    section: str
    follows: bool = False


class ActionRow(NamedTuple):
    """Something that a form does: the path that it is sent to, and the function."""

    path: str
    do: Action


PAGES: Final[dict[str, PageRow]] = {
    "tests": PageRow("", tests_page, "tests", follows=True),
    "runs": PageRow("/runs", runs_page, "runs", follows=True),
    "run": PageRow("/runs/{run}", one_run_page, "runs", follows=True),
    "suite": PageRow("/suites/{suite}", suite_page, "runs", follows=True),
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


def render(
    page: Page,
    links: Links,
    source: Source | None = None,
    *,
    section: str = "",
    csrf: str = "",
    known: str = "",
    served: bool = True,
) -> str:
    """Return the HTML of a page; the templates escape all texts.

    The navigation marks the page's section. Forms must send `csrf` back, and pages that follow runs send what they
    have `known` of them. Without `served`, nothing answers forms and searches, and the page has none. Pages without a
    source, such as the login, show nothing of the project.
    """
    return (
        _environment()
        .get_template(page.template)
        .render(
            page=page,
            url=links,
            source=source,
            section=section,
            sections=dict.fromkeys(SECTION_OF.values()),
            csrf=csrf,
            known=known,
            served=served,
            policy=POLICY,
            version=__version__,
            **page.values,
        )
    )


@cache
def static_files() -> dict[str, Path]:
    """Return the static files by name."""
    return {path.name: path for path in (*_STATIC.iterdir(), *_SHARED) if path.is_file()}


@cache
def _environment() -> Environment:
    made = environment(_TEMPLATES)
    made.filters |= {"utterances": all_utterances, "why": why_not_passed}
    made.tests |= {"acceptable": is_acceptable, "partly_judged": lambda case: coverage_of(case).share < 1}
    return made
