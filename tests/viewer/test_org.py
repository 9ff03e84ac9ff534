"""The pages of the org."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

import pytest

from evalmeta.cli.main import main
from evalmeta.cli.orgs import connected, run_async
from evalmeta.client.metadata import deploy
from evalmeta.protocol.metadata_api import DeployOptions
from org.parts import definition, package

if TYPE_CHECKING:
    from evalmeta.package.project import Project
    from viewer.conftest import Browser

SAMPLES = Path(__file__).parents[2] / "metadata-samples"


@pytest.fixture
def deployed(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The sample definitions, deployed."""
    copytree(SAMPLES / "aiEvaluationDefinitions", project.root / "aiEvaluationDefinitions")
    with pytest.raises(SystemExit):
        main(["deploy"])
    capsys.readouterr()


@pytest.mark.usefixtures("deployed")
def test_definitions_are_shown_with_where_they_stand(project: Project, browser: Browser) -> None:
    folder = project.root / "aiEvaluationDefinitions"
    (folder / "Refund_Limits.aiEvaluationDefinition").unlink()
    changed = folder / "World_Accounts.aiEvaluationDefinition"
    changed.write_text(changed.read_text().replace("<?xml", "<?xml", 1) + "\n")
    (folder / "New_One.aiEvaluationDefinition").write_text(changed.read_text())

    html = browser.page("/view/tests")

    for name, state in (
        ("Refund_Limits", "deleted locally"),
        ("World_Accounts", "changed locally"),
        ("New_One", "only local"),
        ("Order_Desk_Criteria", "deployed"),
    ):
        assert re.search(rf"{name}</td>.*?{state}", html, re.DOTALL), name


@pytest.mark.usefixtures("deployed")
def test_components_and_deployments_are_sorted_apart(browser: Browser) -> None:
    def names(order: str) -> list[str]:
        return re.findall(r"<tr data-row>\s*<td>(\w+)</td>|$", browser.page(f"/view/org?{order}"))[:-1]

    found = names("sort=name")

    assert found == sorted(found, key=str.casefold)
    assert names("sort=-name&jobs_sort=started") == found[::-1]
    html = browser.page("/view/org?sort=-name&jobs_sort=-took&text=a")
    assert html.count('aria-sort="descending"') == 2
    assert '<input type="hidden" name="jobs_sort" value="-took">' in html
    assert 'href="/view/org?text=a&amp;sort=-name&amp;jobs_sort=job"' in html


@pytest.mark.usefixtures("deployed")
def test_the_columns_of_both_tables_are_chosen(browser: Browser) -> None:
    html = browser.page("/view/org?columns=name&columns=type&jobs_columns=status&jobs_columns=job")

    headings = [re.sub("<[^>]+>", "", heading) for heading in re.findall(r'<th scope="col".*?</th>', html)]
    assert headings == ["Name", "Type", "Status", "Job"]
    assert "/view/csv" not in html


@pytest.mark.usefixtures("deployed")
def test_a_deployment_shows_its_components(browser: Browser) -> None:
    [job] = re.findall(r"/view/org/jobs/(\w+)", browser.page("/view/org"))

    html = browser.page(f"/view/org/jobs/{job}")

    assert "Order_Desk_Criteria" in html
    assert "created" in html


def test_a_refused_deployment_shows_its_problems(project: Project, browser: Browser) -> None:
    async def send() -> str:
        async with connected(project, None) as connection:
            zip_file = package({"Bad": definition("Bad", extra="<bogus/>")})
            return (await deploy(connection, zip_file, options=DeployOptions())).id

    job = run_async(send())

    html = browser.page(f"/view/org/jobs/{job}")

    assert "Failed" in html
    assert "bogus" in html
    assert "Bad.aiEvaluationDefinition:" in html


def test_empty_tables_are_not_sorted(browser: Browser) -> None:
    assert "Nothing is deployed" in browser.page("/view/org")
    assert "Order and columns" not in browser.page("/view/org")
