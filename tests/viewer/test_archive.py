"""The pages of an archive are those of stored runs, but nothing can be changed there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from evalmeta.api.runs.archives import archive_runs, open_archive
from evalmeta.store.database import open_database
from viewer.conftest import RUN, Browser

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project

CASE = f"/view/runs/{RUN}/cases/2"
FORM = {"result": "topic_sequence_match", "judgement": "wrong", "iteration": "1", "turn": "0"}


def test_an_archived_case_is_shown_without_forms_and_a_form_that_is_sent_changes_nothing(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    run()
    place = os.fspath(project.root / "kept")
    archive_runs(project, ["latest"], place)
    opened = open_archive(project, place)
    archived = Browser(opened.project)
    assert 'value="wrong"' in browser.page(CASE)
    page = archived.page(CASE)
    assert "Cancel order 13." in page
    assert 'value="wrong"' not in page
    assert browser.send(CASE, f"{CASE}/mark", FORM)
    reply = archived.client.post(f"{CASE}/mark", data={**FORM, "csrf": archived.csrf("/view")})
    assert "the runs of an archive cannot be changed" in reply.text
    marks = "SELECT count(*) FROM mark"
    for store, number in ((project.store, 1), (opened.project.store, 0)):
        with open_database(store) as database:
            assert database.query(marks) == [(number,)]


def test_pages_of_a_run_and_of_the_lists_are_those_of_the_store(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    run()
    place = os.fspath(project.root / "kept")
    archive_runs(project, ["latest"], place)
    archived = Browser(open_archive(project, place).project)
    for path in ("/view", "/view/runs", f"/view/runs/{RUN}"):
        stored, read = (one.page(path) for one in (browser, archived))
        assert _shown(stored) == _shown(read)
        assert "orders.yaml" in read


def _shown(page: str) -> str:
    """Return the content of a page, in which forms have values of their sessions."""
    main = page.partition("<main")[2].partition("</main>")[0]
    assert main
    return main
