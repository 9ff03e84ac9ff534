"""Pages as HTML."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta import report
from evalmeta.api.judging.acceptance import is_acceptable
from evalmeta.model.aggregation import coverage_of
from evalmeta.report.details import all_utterances, why_not_passed
from evalmeta.report.html import environment
from evalmeta.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

    from evalmeta.viewer.pages import Links, Page, Source

_STATIC: Final = Path(__file__).parent / "static"
# Reports have the same parts.
_SHARED: Final = (Path(report.__file__).parent / "templates" / "parts.css",)
_TEMPLATES: Final = Path(__file__).parent / "templates"
# No inline script or style, and nothing from elsewhere. Other pages must not embed these.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECTIONS: Final = (("tests", "Tests"), ("runs", "Runs"), ("compare", "Compare"), ("trends", "Trends"), ("org", "Org"))


def render(
    page: Page, links: Links, source: Source | None = None, *, section: str = "", csrf: str = "", served: bool = True
) -> str:
    """Return the HTML of a page; the templates escape all texts.

    The navigation marks the page's section. Forms must send `csrf` back; without `served`, nothing answers forms and
    searches, and the page has none. Pages without a source, such as the login, show nothing of the project.
    """
    return (
        _environment()
        .get_template(page.template)
        .render(
            page=page,
            url=links,
            source=source,
            section=section,
            sections=SECTIONS,
            csrf=csrf,
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
