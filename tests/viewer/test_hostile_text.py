"""Hostile text in every field of a project stays text on every page."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import deque
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

import pytest

from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

HOSTILE: Final = "\"'><script>ran=1</script><img src=x onerror=ran=1>[a](javascript:ran=1)</textarea>{{7*7}}"
# Names of files and branches have no slash and no blank.
NAME: Final = "\"'><svg\tonload=ran=1>"
# Pages with the same path differ only in filters, orders and places.
_PAGES_OF_A_KIND: Final = 3
LATER: Final = "4KB000000000002GAA"
_AGENT: Final = f'''
HOSTILE = {HOSTILE!r}
IS_LATER = False


def answer(utterance):
    """Answer with hostile text."""
    if "crash" in utterance and IS_LATER:
        raise ValueError(HOSTILE)
    call = {{"name": HOSTILE, "input": {{HOSTILE: HOSTILE}}, "output": HOSTILE, "error": HOSTILE}}
    calls = [call, {{"name": "Later" + HOSTILE}}] if IS_LATER else [call]
    outcome = ("# Later " if IS_LATER else "") + HOSTILE
    return {{"topic": HOSTILE, "outcome": outcome, "actions": calls, "state": {{HOSTILE: HOSTILE}}}}
'''
_NEXT_MONTH: Final = datetime.now(UTC).date() + timedelta(days=30)
_SETTINGS: Final = '[subjects.Order_Agent]\nadapter = "python"\ntarget = "order_agent:answer"\n'


def _case(**keys: object) -> dict[str, object]:
    return {
        "name": HOSTILE,
        "input": HOSTILE,
        "tags": [HOSTILE],
        "metadata": {HOSTILE: HOSTILE},
        "expectedTopic": HOSTILE,
        "contains": HOSTILE,
        **keys,
    }


_SPEC: Final = {
    "name": HOSTILE,
    "subjectName": "Order_Agent",
    "testCases": [
        _case(actions=[HOSTILE]),
        _case(contains=f"never {HOSTILE}"),
        _case(input=f"crash {HOSTILE}"),
        _case(expectedOutcome=HOSTILE),
        _case(quarantine={"reason": HOSTILE, "until": f"{_NEXT_MONTH}"}, contains=f"never {HOSTILE}"),
        {"name": HOSTILE, "turns": [{"input": HOSTILE, "contains": HOSTILE}, {"input": HOSTILE, "equals": HOSTILE}]},
    ],
}


class Elements(HTMLParser):
    """The elements of a page that could run something, and its links."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.hostile: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what evalmeta's pages never have."""
        values = {name: value or "" for name, value in attrs}
        is_own_script = tag == "script" and values.get("src", "").startswith("/view/static/")
        runs = tag in {"script", "img", "iframe", "object"} and not is_own_script
        if runs or any(name.startswith("on") for name in values):
            self.hostile.append(self.get_starttag_text() or tag)
        for name in ("href", "action", "src"):
            address = values.get(name, "")
            if urlsplit(address).scheme not in {"", "http"}:
                self.hostile.append(self.get_starttag_text() or tag)
            if name == "href" and address.startswith("/view"):
                self.links.append(address.partition("#")[0])


@pytest.fixture
def project(project: Project) -> Project:
    """Gives a project of which every text is hostile, with two runs; in the second, cases broke."""
    root = project.root
    test = f"tests/{NAME}.yaml"
    (root / "orders.yaml").unlink()
    (root / "tests").mkdir()
    (root / test).write_text(json.dumps(_SPEC))
    (root / "evalmeta.toml").write_text(_SETTINGS)
    (root / "order_agent.py").write_text(_AGENT)
    _git(root, "init", "--quiet", "--initial-branch", "\"'><svg/onload=ran=1>")
    for text in (_AGENT, _AGENT.replace("IS_LATER = False", "IS_LATER = True")):
        (root / "order_agent.py").write_text(text)
        _git(root, "add", "--all")
        _git(root, "commit", "--quiet", "--message", HOSTILE)
        _run(root, test)
    _run(root, test, "--tag", HOSTILE)
    return project


def _run(folder: Path, *words: str) -> None:
    """Run a test in a process of its own, because Playwright has an event loop in this one."""
    command = [sys.executable, "-m", "evalmeta", "run", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in {1, 100}, done.stderr


def _git(folder: Path, *words: str) -> None:
    names = ("-c", f"user.name={HOSTILE}", "-c", "user.email=ada@example.com")
    subprocess.run(["git", *names, "-C", str(folder), *words], check=True, capture_output=True)  # noqa: S607


def addresses() -> Iterator[str]:
    """Yield the addresses of pages with hostile text in every parameter."""
    text = quote(HOSTILE, safe="")
    yield from (f"/view{path}" for path in ("", "/tests", "/runs", "/compare", "/review", "/trends", "/org"))
    yield f"/view?since=previous&other={text}"
    yield f"/view?chosen={text}"
    yield f"/view/tests?text={text}&sort={text}"
    yield f"/view/runs?text={text}&test={text}&agent={text}&branch={text}&tag={text}&sort={text}&since={text}"
    yield f"/view/runs/{LATER}?text={text}&expectation={text}&show={text}&tag={text}&sort={text}"
    yield f"/view/runs/{LATER}/cases/1?show={text}"
    yield f"/view/runs/{text}"
    yield f"/view/compare?after={LATER}&before={RUN}&text={text}&expectation={text}&fault={text}&tag={text}"
    yield f"/view/compare?after={text}&before={text}"
    yield f"/view/search?q={text}"
    yield f"/view/trends?test={text}"
    yield f"/view/org?text={text}"
    yield f"/view/{text}"


def test_hostile_texts_are_shown_as_text_on_every_page(browser: Browser) -> None:
    browser.log_in()
    waiting, seen = deque(addresses()), set[str]()
    kinds: dict[str, int] = {}
    while waiting:
        address = waiting.popleft()
        kind = urlsplit(address).path
        if address in seen or kinds.get(kind, 0) >= _PAGES_OF_A_KIND or "/static/" in address:
            continue
        seen.add(address)
        kinds[kind] = kinds.get(kind, 0) + 1
        page = browser.client.get(address)
        assert page.headers["content-security-policy"].startswith("default-src 'none'"), address
        if not page.headers["content-type"].startswith("text/html"):
            assert page.headers["content-disposition"].startswith("attachment"), address
            continue
        elements = Elements(page.text)
        assert not elements.hostile, address
        assert "49</textarea>" not in page.text
        waiting += elements.links
    assert {f"/view/runs/{LATER}/cases/{number}" for number in range(1, 7)} <= kinds.keys()
    for address in ("", f"/runs/{LATER}", f"/runs/{LATER}/cases/1", f"/compare?after={LATER}", "/review"):
        assert "&lt;script&gt;ran=1&lt;/script&gt;" in browser.page(f"/view{address}"), address


@pytest.mark.browser
def test_chromium_runs_nothing_of_hostile_texts(project: Project) -> None:
    from chromium import chromium
    from viewer.test_in_a_browser import Started, log_in

    cases = [f"/view/runs/{LATER}/cases/{number}" for number in range(1, 7)]
    refused: list[str] = []
    command = [sys.executable, "-m", "evalmeta", "view", "--port", "0", "--no-open"]
    with (
        subprocess.Popen(command, cwd=project.root, stdout=subprocess.PIPE, text=True) as process,
        chromium() as browser,
    ):
        try:
            assert process.stdout
            viewer = Started(*(process.stdout.readline().split()[1] for _ in range(2)))
            page = browser.new_page()
            page.on("console", lambda message: refused.append(message.text))
            log_in(page, viewer)
            for address in (*addresses(), *cases):
                page.goto(viewer.origin + address)
                assert page.evaluate("window.ran") is None, address
            page.close()
        finally:
            process.send_signal(signal.SIGINT)
    # The policy of the pages would have refused to run it.
    assert not [text for text in refused if "Content Security Policy" in text]
