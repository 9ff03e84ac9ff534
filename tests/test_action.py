"""The GitHub Action: its file, and what its steps leave in a fresh checkout."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, ClassVar

import jsonschema
import pytest
import yaml
from lxml import etree

from workflows import ACTION, EXAMPLES, ROOT, SHELL, Job

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = ROOT / "metadata-samples"
INSTALL = ["Install evalmeta"]
REPORTS = {"junit.xml", "report.html", "summary.md", "annotations.github.txt"}
STEPS = ACTION["runs"]["steps"]
KEYS = {"name", "id", "if", "uses", "with", "run", "shell", "working-directory", "env"}

# The other example is a part of a workflow.
WORKFLOWS = [example for example in EXAMPLES if isinstance(example, dict)]


def test_the_action_has_what_github_needs() -> None:
    assert {"name", "description", "inputs", "outputs", "runs"} <= set(ACTION)
    assert ACTION["runs"]["using"] == "composite"
    assert all(set(step) <= KEYS and ("run" in step) is ("shell" in step) for step in STEPS)
    assert all(set(each) == {"description", "default"} for each in ACTION["inputs"].values())


def test_scripts_hold_no_expressions_which_could_add_commands() -> None:
    assert [step["name"] for step in STEPS if "${{" in step.get("run", "")] == []


def test_inputs_that_steps_use_exist() -> None:
    assert set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text())) == set(ACTION["inputs"])


@pytest.mark.parametrize("path", ["action.yml", "docs/ci.md"])
def test_actions_of_others_are_pinned_by_commit(path: str) -> None:
    used = re.findall(r"uses: (?!OWNER)(\S+)", (ROOT / path).read_text())
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", each)] == []


@pytest.mark.parametrize("requirements", ["", "-r requirements.txt"])
def test_evalmeta_is_installed_with_the_tested_versions_and_the_checkout_is_safe(
    tmp_path: Path, requirements: str
) -> None:
    [script] = [step["run"] for step in STEPS if step["name"] in INSTALL]
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@" >> calls\n')
    python.chmod(0o755)
    given = {"RUNNER_TEMP": tmp_path, "GITHUB_ACTION_PATH": ROOT, "GITHUB_WORKSPACE": "/there"}
    environment = {name: str(value) for name, value in given.items()} | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_ENV": str(tmp_path / "env"),
        "REQUIREMENTS": requirements,
    }
    subprocess.run([*SHELL, script], check=True, cwd=tmp_path, env=environment)

    constraints = tmp_path / "evalmeta-constraints.txt"
    first, *more = (tmp_path / "calls").read_text().splitlines()
    assert first == f"-m pip install --quiet --constraint {constraints} {ROOT}"
    assert more == ([f"-m pip install --quiet {requirements}"] if requirements else [])
    pinned = [line for line in constraints.read_text().splitlines() if not line.startswith("#")]
    assert pinned == re.findall(
        r"^\S+==\S+?(?: ;[^\\\n]+?)?(?= *\\?$)", (ROOT / "constraints.txt").read_text(), re.MULTILINE
    )
    assert len(pinned) > 20
    assert (tmp_path / "env").read_text() == "EVALMETA_SAFE_FOLDERS=/there\n"


class Repository(ThreadingHTTPServer):
    """GitHub's API for the comments of one pull request.

    `status` refuses what would be written; `missing` is how many bytes of each reply do not arrive.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict[str, object]] = []
        self.status = 200
        self.missing = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def bodies(self) -> list[str]:
        return [str(each["body"]) for each in self.comments]

    def add(self, body: str, author: str = "Bot") -> None:
        self.comments.append({"id": len(self.comments), "body": body, "user": {"type": author}})


class Handler(BaseHTTPRequestHandler):
    server: ClassVar[Repository]  # type: ignore[assignment]
    ISSUE = "/repos/acme/shop/issues/7/comments"

    def do_GET(self) -> None:
        assert self.path.startswith(f"{self.ISSUE}?per_page=100&page=")
        page = int(self.path.rsplit("=", 1)[1])
        self.reply(self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self) -> None:
        assert self.path == self.ISSUE
        if text := self.text():
            self.server.add(text)
        self.reply({})

    def do_PATCH(self) -> None:
        if text := self.text():
            self.server.comments[int(self.path.removeprefix("/repos/acme/shop/issues/comments/"))]["body"] = text
        self.reply({})

    def text(self) -> str:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Authorization"] == "Bearer secret"
        return str(json.loads(body)["body"]) if self.server.status == 200 else ""

    def reply(self, value: object) -> None:
        self.send_response(200 if self.command == "GET" else self.server.status)
        body = json.dumps(value).encode()
        self.send_header("Content-Length", str(len(body) + self.server.missing))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def repository() -> Iterator[Repository]:
    with Repository() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def job(folder: Path, project: Path, repository: Repository | None = None) -> Job:
    if repository is None:
        made = Job(folder, project)
    else:
        made = Job(folder, project, "pull_request", {"GITHUB_API_URL": repository.url})
    made.checkout()
    return made


def failures_in(job: Job) -> list[str]:
    junit = etree.parse(job.folder / "temp/evalmeta/junit.xml")
    return [str(each.get("name")) for each in junit.iter("testcase") if each.find("failure") is not None]


@pytest.mark.slow
def test_a_passing_project_leaves_all_reports_a_summary_and_a_comment(tmp_path: Path, repository: Repository) -> None:
    done = job(tmp_path, SAMPLES / "dx-project", repository)
    done.run_action({}, without=INSTALL)
    assert {*done.outcomes.values()} == {"success"}, done.log
    assert {path.name for path in (done.artifacts / "evalmeta").iterdir()} == REPORTS
    assert done.summary in repository.bodies[0]
    assert "actions/runs/42" in repository.bodies[0]
    assert "::notice " in done.log


@pytest.mark.slow
def test_a_failing_case_makes_the_job_red_and_is_reported_everywhere(tmp_path: Path, repository: Repository) -> None:
    done = job(tmp_path, SAMPLES / "failing", repository)
    done.run_action({}, without=INSTALL)
    assert [name for name, outcome in done.outcomes.items() if outcome != "success"] == ["run"]
    assert len(failures_in(done)) == 3
    assert "::error file=aiEvaluationDefinitions/Returns_Desk_Checks.aiEvaluationDefinition,line=25" in done.log
    assert all("missing: PrintLabel" in text for text in (done.summary, *repository.bodies))


@pytest.mark.slow
def test_failures_of_the_baseline_do_not_make_the_job_red(tmp_path: Path, repository: Repository) -> None:
    done = job(tmp_path, SAMPLES / "failing", repository)
    saved = "evalmeta deploy && ! evalmeta test run --wait && evalmeta test baseline -o known.json && rm -r .evalmeta"
    done.run_steps([{"name": "baseline", "run": saved}])
    done.run_action({"baseline": "known.json"}, without=INSTALL)
    assert {*done.outcomes.values()} == {"success"}, done.log
    assert failures_in(done) == []
    assert "Compared with <code>known.json</code>: no change" in repository.bodies[0]


@pytest.mark.slow
def test_without_a_deployment_the_job_is_red_and_says_what_to_do(tmp_path: Path) -> None:
    done = job(tmp_path, SAMPLES / "grading")
    done.run_action({}, without=[*INSTALL, "Deploy to the embedded org"])
    assert done.outcomes["run"] == "failure"
    assert "because a fresh checkout has an empty org: evalmeta deploy" in done.log
    assert "::error::The report junit.xml was not written." in done.log
    assert "set the input 'paths'" in done.log


@pytest.mark.slow
def test_a_project_without_tests_makes_the_job_red(tmp_path: Path) -> None:
    project = tmp_path / "empty"
    (project / "aiEvaluationDefinitions").mkdir(parents=True)
    shutil.copy(SAMPLES / "failing/evalmeta.toml", project)
    done = job(tmp_path, project)
    done.run_action({}, without=INSTALL)
    assert done.has_failed


@pytest.mark.slow
def test_a_missing_report_makes_the_job_red(tmp_path: Path) -> None:
    done = job(tmp_path, SAMPLES / "grading")
    done.run_action({}, without=INSTALL)
    (tmp_path / "temp/evalmeta/report.html").unlink()
    show = next(step for step in STEPS if step["name"] == "Show annotations and the job summary")
    done.run_steps([show], {"paths": ""})
    assert done.outcomes[show["name"]] == "failure"
    assert "::error::The report report.html was not written." in done.log


@pytest.mark.slow
def test_files_are_run_without_a_deployment(tmp_path: Path) -> None:
    done = job(tmp_path, SAMPLES / "formats")
    done.run_action({"paths": "weather.test.json", "arguments": "--iterations 2"}, without=INSTALL)
    assert done.outcomes["Deploy to the embedded org"] == "skipped"
    assert not done.has_failed, done.log


def test_inputs_cannot_add_commands(tmp_path: Path) -> None:
    done = job(tmp_path, SAMPLES / "grading")
    planted = "$(touch /tmp/x); touch planted; `touch planted`"
    done.run_action({"arguments": planted, "baseline": planted, "paths": planted}, without=INSTALL)
    assert done.has_failed
    assert not list(tmp_path.rglob("planted"))


def comment(tmp_path: Path, repository: Repository, report: str, name: str = "evalmeta") -> Job:
    done = job(tmp_path, tmp_path / "nothing", repository)
    (tmp_path / "summary.md").write_text(report)
    script = f'python "$GITHUB_ACTION_PATH/action/comment.py" ../summary.md {name}'
    done.run_steps([{"name": "comment", "env": {"GITHUB_TOKEN": "secret"}, "run": script}])
    return done


@pytest.fixture
def nothing(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()


@pytest.mark.usefixtures("nothing")
def test_a_later_comment_replaces_the_one_with_the_same_name(tmp_path: Path, repository: Repository) -> None:
    for place in range(150):
        repository.add(f"comment {place}", "User")
    for report, name in (("first", "shop"), ("other", "desk"), ("second", "shop")):
        assert not comment(tmp_path, repository, report, name).has_failed
    assert [body.split("\n")[:4] for body in repository.bodies[150:]] == [
        ["<!-- evalmeta shop -->", "## shop", "", "second"],
        ["<!-- evalmeta desk -->", "## desk", "", "other"],
    ]


@pytest.mark.usefixtures("nothing")
def test_a_comment_of_a_person_is_never_replaced(tmp_path: Path, repository: Repository) -> None:
    repository.add("<!-- evalmeta evalmeta -->\nmine", "User")
    comment(tmp_path, repository, "ours")
    assert len(repository.bodies) == 2
    assert repository.bodies[0].endswith("mine")


@pytest.mark.usefixtures("nothing")
def test_a_long_report_fits_into_a_comment(tmp_path: Path, repository: Repository) -> None:
    comment(tmp_path, repository, "x" * 70_000)
    assert len(repository.bodies[0]) == 65_536


@pytest.mark.usefixtures("nothing")
def test_a_token_that_can_only_read_is_a_notice_and_other_errors_fail(tmp_path: Path, repository: Repository) -> None:
    repository.status = 403
    done = comment(tmp_path, repository, "x")
    assert (done.has_failed, "::notice::The comment was not written" in done.log) == (False, True)
    repository.status = 500
    assert comment(tmp_path, repository, "x").has_failed
    repository.missing = 1
    assert "::error::The comment was not written: IncompleteRead" in comment(tmp_path, repository, "x").log
    assert repository.comments == []


@pytest.mark.slow
def test_the_first_step_installs_the_version_of_the_action(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    [packages] = (tmp_path / "venv/lib").glob("*/site-packages")
    (packages / "development.pth").write_text("\n".join(each for each in sys.path if each.endswith("site-packages")))
    done = job(tmp_path, SAMPLES / "grading")
    # Dependencies and the build tool are those of the tests, so nothing is downloaded, and nothing is pinned.
    checkout = tmp_path / "checkout"
    for name in ("src", "xsd", "action"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    (checkout / "constraints.txt").touch()
    own = {
        "GITHUB_ACTION_PATH": str(checkout),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PATH": f"{tmp_path}/venv/bin:{os.environ['PATH']}",
    }
    done.environment = own
    done.run_action({"arguments": "--case 1"})
    assert not done.has_failed, done.log
    assert (packages / "evalmeta").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("document", "schema"),
    [
        (ACTION, "github-actions"),
        *zip(
            [example for example in EXAMPLES if isinstance(example, dict)],
            ["github-workflows", "github-workflows", "gitlab-ci", "azure-pipelines"],
            strict=True,
        ),
    ],
)
def test_actions_and_workflows_fit_the_schemas_of_their_systems(document: object, schema: str) -> None:
    path = Path(sys.prefix) / f"ci-schemas/{schema}.json"
    assert path.exists(), "`make thorough` installs the schemas of CI systems"
    jsonschema.validate(document, json.loads(path.read_text()))


@pytest.mark.slow
def test_the_workflow_of_init_passes_and_a_failing_case_makes_it_red(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for place, broken in enumerate(["", "def answer(utterance):\n    return 'No.'\n"]):
        subprocess.run([sys.executable, "-m", "evalmeta", "init", project, "--ci", "github"], check=True)
        [agent] = project.glob("*.py")
        agent.write_text(broken or agent.read_text())
        done = Job(tmp_path / f"{place}", project, environment={"PIP_NO_INDEX": "1"})
        done.folder.mkdir()
        [steps] = [each["steps"] for each in yaml.safe_load(next(project.rglob("*.yml")).read_text())["jobs"].values()]
        done.run_steps(steps)
        assert done.has_failed is bool(broken), done.log
        assert {path.name for path in (done.artifacts / "agent-tests").iterdir()} == REPORTS
        assert done.summary
