"""The pages and actions by name: their paths below `/view`, what makes them, and how they become HTML."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from markupsafe import Markup

from evalmeta import report
from evalmeta.api.judging.acceptance import is_acceptable
from evalmeta.model.aggregation import coverage_of
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.report.details import all_utterances, why_not_passed
from evalmeta.report.html import environment, time_text
from evalmeta.report.text import SHOWN_CHARS, clean, file_size, one_line
from evalmeta.version import __version__
from evalmeta.viewer.case import accept, acceptance_page, case_page, mark
from evalmeta.viewer.case_texts import rendered_text, step_text, text_page
from evalmeta.viewer.changes import changed_cases, changed_page, changes_page
from evalmeta.viewer.compare import compare_page, compared_cases, compared_page
from evalmeta.viewer.coverage import coverage_page
from evalmeta.viewer.grid import grid_page
from evalmeta.viewer.matrix import matrix_page
from evalmeta.viewer.org import job_page, org_page
from evalmeta.viewer.review import review_page, waiting_count
from evalmeta.viewer.run import one_run_page, run_cases, suite_cases, suite_page
from evalmeta.viewer.runs import run_table, runs_page
from evalmeta.viewer.search import search_page
from evalmeta.viewer.tests import listed_tests, tests_page
from evalmeta.viewer.trends import trends_page

if TYPE_CHECKING:
    from jinja2 import Environment

    from evalmeta.viewer.pages import Action, Links, MakePage, Page, Source
    from evalmeta.viewer.tables import MakeSheet


# No inline script or style, and nothing from elsewhere. Other pages must not embed these.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_STATIC: Final = Path(__file__).parent / "static"
# Reports have the same parts.
_SHARED: Final = (Path(report.__file__).parent / "templates" / "parts.css",)
TEMPLATES: Final = Path(__file__).parent / "templates"
_PART_ENDS: Final = re.compile("(?<=[/_])")
_PATH_CHARS: Final = 400


class Inline(NamedTuple):
    """What an HTML file contains that is shown without a server; nothing of it is in pages that its script shows.

    Attributes:
        style: its style sheet.
        script: its script.
        policy: its Content Security Policy.
        nonce: what the policy requires of the script with the data of the other pages.
        note: what the file has, and what it lacks.
    """

    style: str = ""
    script: str = ""
    policy: str = ""
    nonce: str = ""
    note: str = ""


class PageRow(NamedTuple):
    """A page: its path, how it is made, its section of the navigation, and whether it may follow unfinished runs.

    `table` returns a part of its table, which can be had as CSV; the parameter `place` says where the part begins.
    """

    path: str
    make: MakePage
    section: str
    follows: bool = False
    table: MakeSheet | None = None
    place: str = "after"


class SheetRow(NamedTuple):
    """The table of a page as CSV: the path of the file, what returns its parts, and the parameter of their place."""

    path: str
    table: MakeSheet
    place: str


class ActionRow(NamedTuple):
    """Something that a form does: the path that it is sent to, and the function."""

    path: str
    do: Action


PAGES: Final[dict[str, PageRow]] = {
    "changes": PageRow("", changes_page, "changes", follows=True),
    "changed": PageRow(
        "/changed", changed_page, "changes", table=lambda source, query, _: changed_cases(source, query)
    ),
    "tests": PageRow(
        "/tests", tests_page, "tests", follows=True, table=lambda source, query, _: listed_tests(source, query)
    ),
    "runs": PageRow("/runs", runs_page, "runs", follows=True, table=run_table),
    "run": PageRow("/runs/{run}", one_run_page, "runs", follows=True, table=run_cases),
    "suite": PageRow("/suites/{suite}", suite_page, "runs", follows=True, table=suite_cases),
    "case": PageRow("/runs/{run}/cases/{number}", case_page, "runs"),
    "text": PageRow("/runs/{run}/cases/{number}/text", text_page, "runs"),
    "acceptance": PageRow("/runs/{run}/cases/{number}/accept", acceptance_page, "runs"),
    "compare": PageRow("/compare", compare_page, "compare", table=compared_cases, place="after_case"),
    "compared": PageRow("/compare/cases", compared_page, "compare"),
    "coverage": PageRow("/coverage", coverage_page, "coverage"),
    "matrix": PageRow("/matrix", matrix_page, "compare"),
    "review": PageRow("/review", review_page, "review"),
    "trends": PageRow("/trends", trends_page, "trends"),
    "grid": PageRow("/grid", grid_page, "trends"),
    "search": PageRow("/search", search_page, "search"),
    "org": PageRow("/org", org_page, "org"),
    "job": PageRow("/org/jobs/{job}", job_page, "org"),
}
ACTIONS: Final[dict[str, ActionRow]] = {
    "mark": ActionRow("/runs/{run}/cases/{number}/mark", mark),
    "accept": ActionRow("/runs/{run}/cases/{number}/accept", accept),
}
SHEETS: Final = {
    f"{name}.csv": SheetRow(f"/csv{row.path}", row.table, row.place) for name, row in PAGES.items() if row.table
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
    inline: Inline | None = None,
) -> str:
    """Return the HTML of a page; the templates escape all texts.

    The navigation marks the page's section. Forms must send `csrf` back, and pages that follow runs send what they
    have `known` of them. Pages without a source, such as the login, show nothing of the project. With `inline`, nothing
    answers forms and searches, and the page has none; it is a whole file only if there is a script.
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
            served=inline is None,
            inline=inline if inline and inline.script else None,
            version=__version__,
            to_review=waiting_count(source) if source and inline is None else 0,
            **page.values,
        )
    )


@cache
def static_files() -> dict[str, Path]:
    """Return the static files by name."""
    return {path.name: path for path in (*_STATIC.iterdir(), *_SHARED) if path.is_file()}


@cache
def static_text(name: str) -> str:
    """Return the text of a static file."""
    return static_files()[name].read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    made = environment(TEMPLATES)
    made.filters |= {
        "clean": clean,
        "path": _path,
        "rendered": rendered_text,
        "size": lambda text: file_size(len(text.encode(errors="surrogatepass"))),
        "step_text": step_text,
        "time": _time,
        "time_text": time_text,
        "utterances": all_utterances,
        "why": why_not_passed,
    }
    made.tests |= {
        "acceptable": is_acceptable,
        "cut": lambda text: len(text) > SHOWN_CHARS,
        "partly_judged": lambda case: coverage_of(case).share < 1,
    }
    return made


def _path(text: str) -> Markup:
    """Return a path or name on one line, which browsers break after its parts and not inside of them."""
    return Markup("<wbr>").join(_PART_ENDS.split(one_line(text, chars=_PATH_CHARS)))


def _time(value: float) -> Markup:
    """Return a time in UTC, which the script of the pages replaces by the local time."""
    moment = to_timestamp(value)
    return Markup('<time datetime="{}">{}</time>').format(moment, time_text(value))
