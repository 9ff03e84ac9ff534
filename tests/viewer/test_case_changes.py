"""Accepting an answer in the viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import httpx

from evalmeta.api.servers import make_token
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

CASE = f"/view/runs/{RUN}/cases/2"
QUERY = "?iteration=1&result=topic_sequence_match&turn=0"


def form_of(html: str) -> dict[str, str]:
    """Return the hidden fields of the last form."""
    parts = html.split('name="')[1:]
    return {part.split('"')[0]: part.split('value="')[1].split('"')[0] for part in parts if 'value="' in part}


def test_an_answer_becomes_the_expectation_after_the_difference_was_shown(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    run()
    before = (project.root / "orders.yaml").read_text()
    assert "Accept this answer" in browser.page(CASE)

    html = browser.page(f"{CASE}/accept{QUERY}")
    assert "-    expectedTopic: Cancellations" in html
    assert "+    expectedTopic: Orders" in html
    assert (project.root / "orders.yaml").read_text() == before

    reply = browser.client.post(f"{CASE}/accept", data=form_of(html))
    assert reply.status_code == httpx.codes.OK
    assert "The answer is the expectation in the file now." in reply.text
    assert (project.root / "orders.yaml").read_text() == before.replace("Cancellations", "Orders")


def test_of_criteria_of_one_name_the_clicked_one_is_accepted_and_marked(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    path = project.root / "orders.yaml"
    path.write_text(before := path.read_text() + "    customEvaluations:" + criterion("Orders") + criterion("Returns"))
    run()
    forms = browser.page(CASE).split("<form")
    accept = [form_of(form) for form in forms if "Accept this answer" in form]
    judge = [form_of(form) for form in forms if 'value="wrong"' in form]
    [chosen] = [each for each in accept if each["result"] == "string_comparison#2"]

    browser.client.post(f"{CASE}/accept", data=form_of(browser.page(f"{CASE}/accept?{urlencode(chosen)}")))
    assert path.read_text() == before.replace("Returns", "Orders")

    [second] = [each for each in judge if each["result"] == "string_comparison#2"]
    browser.client.post(f"{CASE}/mark", data={**second, "judgement": "wrong", "note": "Mine."})
    [section] = [part for part in browser.page(CASE).split("<section") if "Mine." in part]
    assert "Returns" in section


def criterion(expected: str) -> str:
    rows = (
        "operator, value: equals",
        "actual, value: $.generatedData.topic, isReference: true",
        f"expected, value: {expected}",
    )
    return "\n      - label: The topic\n        name: string_comparison\n        parameters:" + "".join(
        f"\n          - {{name: {row}}}" for row in rows
    )


def test_a_file_that_changed_meanwhile_is_not_overwritten(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    run()
    form = form_of(browser.page(f"{CASE}/accept{QUERY}"))
    path = project.root / "orders.yaml"
    path.write_text(changed := path.read_text() + "# mine\n")

    reply = browser.client.post(f"{CASE}/accept", data=form)

    assert reply.status_code == httpx.codes.BAD_REQUEST
    assert path.read_text() == changed


def test_only_the_admin_changes_files(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    browser.log_in(make_token(project, username="ann"))

    assert browser.client.get(f"{CASE}/accept{QUERY}").status_code == httpx.codes.NOT_FOUND


def test_a_result_that_cannot_be_accepted_says_why(browser: Browser, run: Callable[..., int]) -> None:
    run()
    browser.log_in()

    reply = browser.client.get(f"{CASE}/accept?iteration=1&result=nothing&turn=0")

    assert reply.status_code in {httpx.codes.BAD_REQUEST, httpx.codes.NOT_FOUND}
    assert "nothing" in reply.text


def test_a_check_of_a_part_of_the_answer_is_neither_accepted_nor_marked(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    spec = project.root / "orders.yaml"
    spec.write_text(spec.read_text().replace("expectedTopic: Cancellations", "contains: Monday"))
    run()

    html = browser.page(CASE)

    assert "Monday" in html
    assert "<mark>" not in html
    assert "Accept this answer" not in html
