"""The page of a case, and what people say of its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta.model.evaluation import today
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

CASE = f"/view/runs/{RUN}/cases/2"
FORM = {"iteration": "1", "result": "topic_sequence_match", "turn": "0"}


def test_a_failure_is_explained_with_the_difference(browser: Browser, run: Callable[..., int]) -> None:
    run()

    html = browser.page(CASE)

    assert "<mark>Cancellations</mark>" in html
    assert "<mark>Orders</mark>" in html
    assert "orders.yaml" in html
    assert "evalmeta run orders.yaml --case 2" in html


def test_a_case_in_quarantine_has_a_badge_and_its_reason(
    browser: Browser, run: Callable[..., int], project: Project
) -> None:
    settings = project.root / "evalmeta.toml"
    entry = f'\n[[quarantine]]\ntest = "orders"\ncase = 2\nreason = "<b>flaky</b>"\nuntil = {today()}\n'
    settings.write_text(settings.read_text() + entry)
    run()

    html = browser.page(CASE)

    assert '<span class="pill measured" title="&lt;b&gt;flaky&lt;/b&gt;">quarantined</span>' in html
    assert f"In quarantine until {today()}: <bdi>&lt;b&gt;flaky&lt;/b&gt;</bdi>" in html
    assert browser.page(f"/view/runs/{RUN}").count(">quarantined</span>") == 1


def test_the_metadata_of_a_case_is_shown(browser: Browser, run: Callable[..., int], project: Project) -> None:
    spec = project.root / "orders.yaml"
    spec.write_text(spec.read_text().replace("Cancellations", "Cancellations\n    metadata: {owner: <b>, level: 2}"))
    run()

    assert "<p>Metadata: <bdi>owner: &lt;b&gt;, level: 2</bdi></p>" in browser.page(CASE)


def test_the_history_shows_the_case_in_earlier_runs(browser: Browser, run: Callable[..., int]) -> None:
    run()
    run()

    html = browser.page("/view/runs/4KB000000000002GAA/cases/2")

    assert html.count("data-row") == 2
    assert f'href="/view/runs/{RUN}/cases/2"' in html


def test_iterations_with_the_same_answer_are_one(browser: Browser, run: Callable[..., int]) -> None:
    run("--iterations", "3")

    assert "3 of 3 iterations, same answer" in browser.page(CASE)


def test_a_person_marks_a_result_and_removes_the_mark(browser: Browser, run: Callable[..., int]) -> None:
    run()

    marked = browser.send(CASE, f"{CASE}/mark", {**FORM, "judgement": "wrong", "note": "<b>Both</b> are right"})
    assert "<b>wrong</b> says Local Admin" in marked
    assert "&lt;b&gt;Both&lt;/b&gt; are right" in marked

    assert "says Local Admin" not in browser.send(CASE, f"{CASE}/mark", {**FORM, "judgement": "none"})


def test_a_person_says_what_an_undecided_verdict_should_be(
    browser: Browser, run: Callable[..., int], project: Project
) -> None:
    undecided = 'def answer(utterance):\n    return "Yes."\n'
    (project.root / "order_agent.py").write_text(undecided)
    run()

    assert "What should the verdict be?" in browser.page(CASE)
    marked = browser.send(CASE, f"{CASE}/mark", {**FORM, "judgement": "pass"})
    assert "<b>should pass</b> says Local Admin" in marked


@pytest.mark.parametrize("change", [{"judgement": "maybe"}, {"judgement": "right", "note": "x" * 2_001}])
def test_a_bad_judgement_is_refused(browser: Browser, run: Callable[..., int], change: dict[str, str]) -> None:
    run()
    value = browser.page(CASE).split('name="csrf" value="')[1].split('"')[0]

    reply = browser.client.post(f"{CASE}/mark", data={**FORM, **change, "csrf": value})

    assert reply.status_code == httpx.codes.BAD_REQUEST


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("\\u202egnp.exe", "\\u202egnp.exe"),
        ("\\x1b[31m", "\\x1b[31m"),
    ],
)
def test_hostile_answers_are_text(
    project: Project, browser: Browser, run: Callable[..., int], text: str, shown: str
) -> None:
    (project.root / "order_agent.py").write_text(f'def answer(_):\n    return "{text}"\n')
    run()
    run()

    second = RUN.replace("1GAA", "2GAA")
    for path in (CASE, f"/view/runs/{RUN}", f"/view/compare?after={second}&before={RUN}"):
        html = browser.page(path)
        assert "<script>alert" not in html
        assert "\u202e" not in html
        assert "\x1b" not in html
    assert shown in browser.page(CASE)


def test_a_huge_answer_is_cut(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    (project.root / "order_agent.py").write_text('def answer(_):\n    return "word " * 190_000\n')
    run()

    html = browser.page(CASE)

    assert "more characters" in html
    assert len(html) < 200_000
