"""Tables: their order, their columns, and their rows as CSV."""

from __future__ import annotations

import csv
import re
from html import unescape
from typing import TYPE_CHECKING, Final

import httpx
import pytest

from evalmeta import limits
from evalmeta.api.servers import make_token
from evalmeta.cli.main import main
from evalmeta.store.database import open_database
from evalmeta.viewer import run as run_pages
from evalmeta.viewer import runs, tests
from evalmeta.viewer.tables import Column, Table, by_rank, layout_of
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

OTHER: Final = "4KB000000000002GAA"
_SPEC: Final = """
name: More
subjectType: AGENT
subjectName: Order_Agent
testCases:
  - utterance: "=HYPERLINK(1)"
    expectedTopic: Orders
  - utterance: Return order 14, please.
    expectedTopic: Returns
  - utterance: Cancel order 15.
    expectedTopic: Orders
"""


@pytest.fixture
def two(project: Project, run: Callable[..., int]) -> None:
    """Two runs of one command, with five cases."""
    (project.root / "more.yaml").write_text(_SPEC)
    run(str(project.root / "more.yaml"))


def cells(html: str, title: str) -> list[str]:
    """Return the texts of a column."""
    found = re.findall(rf'<td data-label="{title}"[^>]*>(.*?)</td>', html, re.DOTALL)
    return [re.sub("<[^>]+>", "", cell).split()[0] for cell in found]


def rows(text: str) -> list[dict[str, str]]:
    return [*csv.DictReader(text.splitlines())]


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("page", "columns"),
    [
        ("tests", [column.name for column in tests.COLUMNS if column.is_plain]),
        ("runs", [column.name for column in runs.COLUMNS if column.cell not in {"run_verdicts", "run_id"}]),
        ("suite", [column.name for column in run_pages.CASE_COLUMNS if not column.is_extra]),
    ],
)
def test_each_column_sorts_in_both_directions(browser: Browser, page: str, columns: list[str]) -> None:
    [suite] = set(re.findall(r"/view/suites/(\w+)", browser.page(f"/view/runs?text={OTHER}")))
    path = f"/view/suites/{suite}" if page == "suite" else f"/view/{page}"
    columns = [name for name in columns if name != "commit"]

    html = browser.page(path)

    for name in columns:
        up, down = (browser.page(f"{path}?sort={sign}{name}") for sign in ("", "-"))
        # Headings of extra columns are not there.
        if f"sort={name}" in html or f"sort=-{name}" in html:
            assert 'aria-sort="ascending"' in up
            assert 'aria-sort="descending"' in down
        assert sorted(re.findall(r'<tr data-row id="([^"]+)"', up)) == sorted(
            re.findall(r'<tr data-row id="([^"]+)"', down)
        )


@pytest.mark.usefixtures("two")
def test_a_table_is_in_the_order_of_its_column(browser: Browser) -> None:
    assert cells(browser.page("/view/runs?sort=test"), "Test") == ["more.yaml", "orders.yaml"]
    assert cells(browser.page("/view/runs?sort=-test"), "Test") == ["orders.yaml", "more.yaml"]
    assert cells(browser.page("/view/tests?sort=-test"), "Test") == ["orders.yaml", "more.yaml"]
    assert cells(browser.page(f"/view/runs/{OTHER}?sort=case"), "Case") == ["1", "2", "3"]
    assert cells(browser.page(f"/view/runs/{OTHER}?sort=-utterance"), "Case") == ["2", "3", "1"]
    assert cells(browser.page(f"/view/runs/{OTHER}?sort=nonsense"), "Case") == ["2", "1", "3"]


def test_what_is_not_known_comes_last_in_both_directions() -> None:
    pairs = [(None, "none"), (2, "two"), (1.0, "one")]

    assert by_rank(pairs, is_descending=False) == ["one", "two", "none"]
    assert by_rank(pairs, is_descending=True) == ["two", "one", "none"]
    assert by_rank([("b", 1), ("A", 2), (None, 3)], is_descending=False) == [2, 1, 3]


@pytest.mark.usefixtures("two")
def test_the_runs_and_the_cases_of_a_command_are_sorted_apart(browser: Browser) -> None:
    [suite] = set(re.findall(r"/view/suites/(\w+)", browser.page(f"/view/runs?text={OTHER}")))

    def tests_of(order: str) -> list[str]:
        return cells(browser.page(f"/view/suites/{suite}?{order}"), "Test")

    assert tests_of("runs_sort=test")[:2] == ["more.yaml", "orders.yaml"]
    assert tests_of("runs_sort=-test")[:2] == ["orders.yaml", "more.yaml"]
    both = unescape(browser.page(f"/view/suites/{suite}?runs_sort=-test&sort=utterance&verdict=pass"))
    assert f'href="/view/suites/{suite}?verdict=pass&sort=utterance&runs_sort=-pass-rate">Pass rate</a>' in both
    assert f'href="/view/suites/{suite}?verdict=pass&runs_sort=-test&sort=-case">Case</a>' in both
    assert '<input type="hidden" name="runs_sort" value="-test">' in both


@pytest.mark.usefixtures("two")
def test_the_usual_table_of_runs_comes_back_and_the_cases_keep_theirs(browser: Browser) -> None:
    [suite] = set(re.findall(r"/view/suites/(\w+)", browser.page(f"/view/runs?text={OTHER}")))
    path = f"/view/suites/{suite}"
    html = unescape(browser.page(f"{path}?runs_sort=-test&runs_columns=test&runs_columns=p95&sort=utterance"))

    of_runs, of_cases, *_ = re.findall(r'<div class="tools">(.*?)</form>', html, re.DOTALL)
    assert f'href="{path}?sort=utterance">Reset</a>' in of_runs
    assert re.findall(r'name="(\w+_sort)"', of_runs) == ["runs_sort"]
    assert f'href="{path}?runs_sort=-test&runs_columns=test.p95">Reset</a>' in of_cases
    assert f'href="{path}?runs_sort=-test&runs_columns=test.p95&sort=-case">Case</a>' in html
    following = unescape(browser.page(f"{path}?runs_sort=-test&runs_columns=test.p95&sort=-case"))
    assert re.findall(r'<th scope="col"[^>]*>(?:<a [^>]*>)?(\w+)', following)[:2] == ["Test", "p95"]


def test_the_values_of_a_trend_are_sorted(browser: Browser, run: Callable[..., int]) -> None:
    run()
    run()

    def order(word: str) -> list[str]:
        return cells(browser.page(f"/view/trends?sort={word}"), "Run")

    assert order("run") == [RUN, OTHER]
    assert order("-started") == [OTHER, RUN]
    assert 'aria-sort="descending"' in browser.page("/view/trends?sort=-p50")


@pytest.fixture
def compared(project: Project, run: Callable[..., int]) -> None:
    """Two runs: in the second, both cases changed."""
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace('"topic": "Orders"', '"topic": "Cancellations"'))
    run()


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize(
    ("order", "numbers"),
    [
        *(("case", ["1", "2"]), ("-case", ["2", "1"]), ("utterance", ["2", "1"]), ("-utterance", ["1", "2"])),
        *(("passed-after", ["1", "2"]), ("-passed-after", ["2", "1"]), ("fault", ["1", "2"]), ("nonsense", ["1", "2"])),
    ],
)
def test_compared_cases_are_a_table_that_each_column_sorts(browser: Browser, order: str, numbers: list[str]) -> None:
    html = browser.page(f"/view/compare/cases?after={OTHER}&sort={order}")

    assert cells(html, "Case") == numbers
    [address] = [unescape(found) for found in re.findall(r'href="(/view/csv/compare[^"]+)"', html)]
    assert [row["Case"] for row in rows(browser.page(address))] == numbers


@pytest.mark.usefixtures("compared")
def test_the_table_of_compared_cases_keeps_the_filters_and_has_pages(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "VIEW_ROWS", 1)
    compare = browser.page(f"/view/compare?after={OTHER}&text=order")
    [address] = [unescape(found) for found in re.findall(r'href="(/view/compare/cases[^"]+)"', compare)]

    first = browser.page(f"{address}&sort=-case")
    [following] = [unescape(found) for found in re.findall(r'rel="next" href="([^"]+)"', first)]
    second = browser.page(following)

    assert (cells(first, "Case"), cells(second, "Case")) == (["2"], ["1"])
    assert "text=order" in following
    assert f"/view/runs/{OTHER}/cases/2" in first


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize(("order", "numbers"), [("score", ["2", "1"]), ("number", ["1", "2"])])
def test_pages_of_compared_cases_go_on_in_the_order_of_the_comparison(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, order: str, numbers: list[str]
) -> None:
    monkeypatch.setattr(limits, "VIEW_ROWS", 1)
    # From here, case 2 broke and case 1 was fixed, so case 2 is the worst.
    compare = browser.page(f"/view/compare?after={RUN}&before={OTHER}&sort={order}")
    [address] = {unescape(found) for found in re.findall(r'href="(/view/compare/cases[^"]+)"', compare)}

    first = browser.page(address)
    [following] = [unescape(found) for found in re.findall(r'rel="next" href="([^"]+)"', first)]

    assert f"sort={order}" in following
    assert [*cells(first, "Case"), *cells(browser.page(following), "Case")] == numbers
    assert re.findall(r'name="sort"', first) == ['name="sort"']
    assert f'<option value="{order}" selected>' in first
    assert re.search(rf'href="/view/compare\?[^"]*sort={order}">Compare</a>', first)


@pytest.mark.usefixtures("two")
def test_pages_of_sorted_cases_are_the_whole_list(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VIEW_ROWS", 1)
    path: str | None = f"/view/runs/{OTHER}?sort=utterance&columns=case.utterance"

    found = []
    while path:
        html = browser.page(path)
        found += re.findall(r'<tr data-row id="[^-]+-(\d)-1"', html)
        # The chosen columns are in all addresses.
        assert "Latency</a>" not in html
        path = next((unescape(address) for address in re.findall(r'rel="next" href="([^"]+)"', html)), None)

    assert found == ["1", "3", "2"]


@pytest.mark.usefixtures("two")
def test_chosen_columns_stay_in_links_and_forms(browser: Browser) -> None:
    html = browser.page("/view/runs?columns=test&columns=branch&sort=-started&text=yaml")

    assert re.findall(r'<th scope="col"[^>]*>(?:<a [^>]*>)?(\w+)', html) == ["Test", "Branch"]
    assert 'href="/view/runs?text=yaml&amp;sort=branch&amp;columns=test.branch"' in html
    search = html.partition('action="/view/runs" data-filter>')[2].partition("</form>")[0]
    assert '<input type="hidden" name="columns" value="test.branch">' in search
    assert '<input type="hidden" name="sort" value="-started">' in search
    assert 'href="/view/csv/runs?text=yaml&amp;sort=-started&amp;columns=test.branch"' in html


def test_all_or_unknown_columns_are_the_usual_ones() -> None:
    columns = (Column("A", "text", str), Column("B", "text", str), Column("C", "text", str, is_extra=True))

    def shown(names: str) -> list[str]:
        layout = layout_of({"columns": names}, "runs", {}, columns, sheet="")
        return [column.title for column in Table(columns, [1], layout=layout).shown]

    assert shown("a.b") == shown("") == shown("x") == ["A", "B"]
    assert shown("c") == ["C"]
    assert layout_of({"columns": "a.b"}, "runs", {}, columns, sheet="").chosen == {}


@pytest.mark.usefixtures("two")
def test_a_case_leads_back_to_the_list_as_it_was_shown_and_to_its_neighbours(browser: Browser) -> None:
    listed = browser.page(f"/view/runs/{OTHER}?sort=-utterance&columns=case&verdict=pass")
    [address] = re.findall(rf'href="(/view/runs/{OTHER}/cases/3[^"]*)"', listed)

    html = browser.page(unescape(address))

    [back] = re.findall(rf'href="(/view/runs/{OTHER}\?[^"]*)"', html.partition("</nav>")[2])
    assert unescape(back) == f"/view/runs/{OTHER}?verdict=pass&sort=-utterance&columns=case"
    assert re.findall(r'rel="(\w+)" href="[^"]+/cases/(\d)', html) == [("next", "1")]


@pytest.mark.usefixtures("two")
def test_csv_has_exactly_the_rows_that_the_filters_find(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CSV_ROWS", 1)
    browser.log_in()

    reply = browser.client.get(f"/view/csv/runs/{OTHER}?verdict=pass")

    assert reply.headers["content-type"] == "text/csv; charset=utf-8"
    assert reply.headers["content-disposition"] == f'attachment; filename="evalmeta-run-{OTHER}.csv"'
    assert [(row["Case"], row["Utterance"]) for row in rows(reply.text)] == [
        ("1", "'=HYPERLINK(1)"),
        ("3", "Cancel order 15."),
    ]
    assert {row["Result"] for row in rows(reply.text)} == {"PASS"}
    assert all(float(row["Latency (ms)"]) > 0 for row in rows(reply.text))
    assert [row["Case"] for row in rows(browser.page(f"/view/csv/runs/{OTHER}?text=order+14"))] == ["2"]
    assert [row["Test"] for row in rows(browser.page("/view/csv/runs?sort=-test"))] == ["orders.yaml", "more.yaml"]
    assert [row["Test"] for row in rows(browser.page("/view/csv/tests?text=more"))] == ["more.yaml"]
    assert browser.page("/view/csv/runs?text=nothing").startswith("Result,Test,")
    assert browser.page("/view/csv/runs?columns=test.errors&sort=test").splitlines() == [
        "Test,Errors",
        "more.yaml,0",
        "orders.yaml,0",
    ]


@pytest.mark.usefixtures("two")
def test_csv_needs_a_session_and_has_only_the_own_runs(project: Project, browser: Browser) -> None:
    assert browser.client.get("/view/csv/runs").status_code == httpx.codes.UNAUTHORIZED
    assert 'value="/view/csv/runs?text=x"' in browser.client.get("/view/csv/runs?text=x").text

    browser.log_in(make_token(project, username="ann@evalmeta.local"))

    assert rows(browser.page("/view/csv/runs")) == []
    assert browser.client.get(f"/view/csv/runs/{RUN}").status_code == httpx.codes.NOT_FOUND


@pytest.mark.usefixtures("two")
def test_cases_are_grouped_by_what_did_not_pass(browser: Browser) -> None:
    path = f"/view/runs/{RUN}"

    html = browser.page(f"{path}?group=expectation")

    assert re.findall(r'<th scope="rowgroup" colspan="\d"><bdi>(.*?)</bdi>', html) == ["Topic", "passed"]
    assert re.findall(r'#results">(\w+) <b>(\d)</b>', html) == [("Topic", "1"), ("passed", "1")]
    html = browser.page(f"{path}?group=cause&verdict=failure")
    assert re.findall(r"<bdi>(.*?)</bdi></th>", html) == ["Topic: expected the topic Cancellations, got Orders"]
    [suite] = set(re.findall(r"/view/suites/(\w+)", browser.page(f"/view/runs?text={OTHER}")))
    html = browser.page(f"/view/suites/{suite}?group=test&sort=case")
    assert re.findall(r"<bdi>(.*?)</bdi></th>", html) == ["more.yaml", "orders.yaml"]
    assert cells(html, "Case") == ["1", "2", "3", "1", "2"]
    # With a text, the pages of all groups would have to be read to count their cases.
    assert (
        "<b>"
        not in browser.page(f"{path}?group=cause&text=order").partition('aria-label="Groups"')[2].partition("</nav>")[0]
    )


@pytest.mark.usefixtures("two")
def test_a_large_run_in_progress_is_sorted_when_it_is_over(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "when it is over" not in browser.page(f"/view/runs/{OTHER}?sort=latency")

    monkeypatch.setattr(run_pages, "can_be_ordered", lambda _: False)

    html = browser.page(f"/view/runs/{OTHER}?sort=latency")
    assert "can be sorted and grouped when it is over" in html
    assert cells(html, "Case") == ["2", "1", "3"]


@pytest.mark.usefixtures("two")
def test_a_search_in_a_sorted_list_stops_at_its_limit_and_continues(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_SEARCHED_ROWS", 1)
    monkeypatch.setattr("evalmeta.viewer.case_orders._CHUNK", 1)

    html = browser.page(f"/view/runs/{OTHER}?sort=case&text=Cancel")

    assert "The search has not looked at all cases yet." in html
    [address] = re.findall(r'rel="next" href="([^"]+)"', html)
    while address:
        html = browser.page(unescape(address))
        address = next(iter(re.findall(r'rel="next" href="([^"]+)"', html)), "")
    assert cells(html, "Case") == ["3"]
    # A file has all of them.
    assert [row["Case"] for row in rows(browser.page(f"/view/csv/runs/{OTHER}?sort=case&text=Cancel"))] == ["3"]


def test_a_test_with_too_many_cases_to_compare_says_so(
    browser: Browser, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_LIVE_CASES", 1)
    monkeypatch.setattr(limits, "MAX_VIEW_COMPARED", 1)
    run()
    run()

    assert 'too many cases: see <a href="/view">Changes</a>' in browser.page("/view/tests")
    assert [row["Marks"] for row in rows(browser.page("/view/csv/tests"))] == ["not compared"]


def test_the_cases_of_a_comparison_are_a_csv_file_as_they_are_filtered(
    project: Project, browser: Browser, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CSV_ROWS", 1)
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace('"topic": "Orders"', '"topic": "Returns"'))
    run()

    html = browser.page(f"/view/compare?after={OTHER}&sort=number")
    [address] = [unescape(found) for found in re.findall(r'href="(/view/csv/compare[^"]+)"', html)]
    [row] = rows(browser.page(address))
    assert (row["Change"], row["Case"], row["Passed before"], row["Passed after"]) == (
        "suspect",
        "1",
        "1 of 1",
        "0 of 1",
    )
    assert row["Why"]
    still = rows(browser.page(f"{address}&standing=still failing"))
    assert [row["Case"] for row in still] == ["2"]


def test_cases_are_grouped_by_their_tags(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    spec = project.root / "orders.yaml"
    spec.write_text(spec.read_text().replace("expectedTopic: Orders", "expectedTopic: Orders\n    tags: [smoke, slow]"))
    run()

    html = browser.page(f"/view/runs/{RUN}?group=tag")

    assert sorted(re.findall(r"<bdi>(.*?)</bdi></th>", html)) == ["no tag", "slow", "smoke"]
    assert re.findall(r'#results">(\w+) <b>(\d)</b>', html) == [("slow", "1"), ("smoke", "1")]
    # A filter by tag reads the cases, so that their numbers are not known.
    chips = (
        browser.page(f"/view/runs/{RUN}?group=tag&tag=slow").partition('aria-label="Groups"')[2].partition("</nav>")[0]
    )
    assert "<b>" not in chips
    with open_database(project.store) as database:
        database.execute("UPDATE run SET keeps_tags = 0")
    assert "1 run does not say which tags the cases had" in browser.page(f"/view/runs/{RUN}?group=tag")


def test_a_long_path_breaks_after_its_parts(browser: Browser, project: Project) -> None:
    folder = project.root / "tests" / "returning_customers" / "<i>"
    folder.mkdir(parents=True)
    (project.root / "orders.yaml").rename(folder / "order_status.yaml")
    with pytest.raises(SystemExit):
        main(["run", str(folder), "--quiet"])

    html = browser.page("/view/runs")

    assert "tests/<wbr>returning_<wbr>customers/<wbr>&lt;i&gt;/<wbr>order_<wbr>status.yaml" in html
