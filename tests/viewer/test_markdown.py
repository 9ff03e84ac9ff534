"""Markdown in answers: what it becomes, and that hostile text stays text."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.viewer.markdown import is_markdown, render_markdown

OWN: Final = re.compile(
    r"</?(?:p|pre|[uo]l|code|strong|em|blockquote|table|thead|tbody|tr|th|td)>|<br>|<hr>|</li>"
    r'|<p class="heading-[1-6]">|<li(?: value="\d+")?(?: class="inner")?>'
)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# One\n#### Four", '<p class="heading-1">One</p><p class="heading-4">Four</p>'),
        ("a **b** *c* `d*e*`", "<p>a <strong>b</strong> <em>c</em> <code>d*e*</code></p>"),
        ("- a\n- b\n  - c", '<ul><li>a</li><li>b</li><li class="inner">c</li></ul>'),
        ("3. a\n4. b", '<ol><li value="3">a</li><li value="4">b</li></ol>'),
        ("```js\na < b\n```\nc", "<pre>a &lt; b</pre><p>c</p>"),
        ("> a\n> b", "<blockquote>a<br>b</blockquote>"),
        (
            "a | b\n--|--\n1 | 2",
            "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>",
        ),
        ("a\nb\n\nc\n---", "<p>a<br>b</p><p>c<br>---</p>"),
        ("***", "<hr>"),
        ("2 * 3 * 4 and snake_case", "<p>2 * 3 * 4 and snake_case</p>"),
    ],
)
def test_markdown_becomes_html(text: str, html: str) -> None:
    assert render_markdown(text) == html


def test_links_images_and_html_stay_text() -> None:
    text = "[a](javascript:alert(1)) ![b](http://x/y.png) <img src=x onerror=alert(1)> <http://x> **<b>**"

    assert set(re.findall(r"<[^>]*>", render_markdown(text))) == {"<p>", "</p>", "<strong>", "</strong>"}


@pytest.mark.parametrize(
    ("text", "expected"), [("Plain, 2 * 3.", False), ("**b**", True), ("- a", True), ("a|b\n-|-", True)]
)
def test_only_text_with_marks_is_rendered(text: str, *, expected: bool) -> None:
    assert is_markdown(text) is expected


@given(st.text(alphabet="ab<>&\"'*_`#|-+>~1. \n\t\\[]()!", max_size=80))
def test_any_text_is_kept_and_has_only_elements_of_the_renderer(text: str) -> None:
    html = str(render_markdown(text))
    rest = OWN.sub("", html)

    assert "<" not in rest
    assert '"' not in rest
    letters = re.sub(r"&\w+;|&#\d+;", "", rest)
    assert [char for char in letters if char == "b"] == [char for char in text if char == "b"]


@pytest.mark.parametrize(
    "text", ["*a" * 50_000, "`" * 99_999, "**a " * 30_000, "|-" * 5_000 + "\n" + "- " * 50_000, "> " * 50_000]
)
def test_long_lines_are_read_once(text: str) -> None:
    assert len(render_markdown(text)) > 10
