"""Workflows and composite actions of GitHub, carried out step by step as GitHub's runner does it.

`run` steps are executed. Of other actions only their effect is imitated: `checkout` copies a project, `upload-artifact`
copies files and fails if there are none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/ci.md").read_text()
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
# YAML 1.1 reads the key `on` as true.
EXAMPLES = [
    yaml.safe_load(text.replace("\non:", '\n"on":')) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
]
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
SECONDS = 120
TOKEN = "secret"  # noqa: S105 - what the API of the tests expects


@dataclass
class Job:
    """One job: what GitHub sets for it, and what its steps left.

    Attributes:
        folder: where the job's folders are created: `work` is the checkout, `artifacts` what was uploaded.
        project: what `checkout` copies.
        outcomes: the outcome of each step, by its id or name.
        matrix: the values of a job of a matrix.
        log: what the steps printed, in order.
    """

    folder: Path
    project: Path
    event: str = "push"
    environment: dict[str, str] = field(default_factory=dict)
    matrix: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    log: str = ""
    _outputs: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    @property
    def summary(self) -> str:
        path = self.folder / "step_summary"
        return path.read_text() if path.exists() else ""

    @property
    def has_failed(self) -> bool:
        return "failure" in self.outcomes.values()

    def checkout(self) -> None:
        ignored = shutil.ignore_patterns(".evalmeta", "__pycache__")
        shutil.copytree(self.project, self.work, ignore=ignored, dirs_exist_ok=True)

    def run_action(self, inputs: Mapping[str, str], *, without: Iterable[str] = ()) -> None:
        """Run the steps of action.yml; `without` leaves out steps by their names."""
        known = {name: str(each["default"]) for name, each in ACTION["inputs"].items()}
        known["token"] = TOKEN
        self.run_steps([each for each in ACTION["runs"]["steps"] if each["name"] not in without], known | dict(inputs))

    def run_steps(self, steps: Iterable[Mapping[str, object]], inputs: Mapping[str, str] | None = None) -> None:
        for place, step in enumerate(steps):
            name = str(step.get("id") or step.get("name") or place)
            if not self._applies(str(step.get("if", "success()")), inputs or {}):
                self.outcomes[name] = "skipped"
                continue
            is_done = self._run(name, step, inputs or {}) if "run" in step else self._use(step, inputs or {})
            self.outcomes[name] = "success" if is_done else "failure"

    def _applies(self, condition: str, inputs: Mapping[str, str]) -> bool:
        terms = [term.strip() for term in condition.split("&&")]
        is_always = "always()" in terms
        return (is_always or not self.has_failed) and all(self._holds(term, inputs) for term in terms)

    def _holds(self, term: str, inputs: Mapping[str, str]) -> bool:
        if term in {"always()", "success()"}:
            return True
        found = re.fullmatch(r"(\S+) (==|!=) '(.*)'", term)
        assert found, term
        return (self._value(found[1], inputs) == found[3]) is (found[2] == "==")

    def _value(self, name: str, inputs: Mapping[str, str]) -> str:
        scope, key, *rest = name.split(".")
        if scope == "inputs":
            return inputs[key]
        if scope == "matrix":
            return self.matrix[key]
        if scope == "steps" and rest[0] == "outcome":
            return self.outcomes[key]
        if scope == "steps":
            return self._outputs.get(key, {}).get(rest[1], "")
        return {"github.token": TOKEN, "github.event_name": self.event}[name]

    def _filled(self, text: object, inputs: Mapping[str, str]) -> str:
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: self._value(found[1], inputs), str(text))

    def _use(self, step: Mapping[str, object], inputs: Mapping[str, str]) -> bool:
        settings = step.get("with")
        given = settings if isinstance(settings, dict) else {}
        values = {key: self._filled(each, inputs) for key, each in given.items()}
        match str(step["uses"]).split("@")[0]:
            case "actions/checkout":
                self.checkout()
            case "actions/upload-artifact":
                assert values["if-no-files-found"] == "error"
                source = self.work / values["path"]
                if not source.is_dir() or not any(source.iterdir()):
                    return False
                # Hidden files are not uploaded.
                shutil.copytree(source, self.artifacts / values["name"], ignore=shutil.ignore_patterns(".*"))
            case "actions/download-artifact":
                for artifact in self.artifacts.glob(values["pattern"]):
                    shutil.copytree(artifact, self.work / values["path"] / artifact.name)
            case "actions/setup-python":
                pass
            case "OWNER/evalmeta":
                self.run_action(values)
            case other:
                raise AssertionError(other)
        return True

    def _run(self, name: str, step: Mapping[str, object], inputs: Mapping[str, str]) -> bool:
        own = step.get("env")
        output = self.folder / "output"
        output.write_text("")
        variables = self._variables() | {"GITHUB_OUTPUT": str(output)}
        variables |= {key: self._filled(each, inputs) for key, each in (own if isinstance(own, dict) else {}).items()}
        folder = self.work / self._filled(step.get("working-directory", "."), inputs)
        done = subprocess.run(
            [*SHELL, str(step["run"])],
            cwd=folder,
            env=variables | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        self.log += done.stdout
        self._outputs[name] = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done.returncode == 0

    def _variables(self) -> dict[str, str]:
        event = self.folder / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 7}} if self.event == "pull_request" else {}))
        (self.folder / "temp").mkdir(exist_ok=True)
        return {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_ENV": str(self.folder / "env"),
            "GITHUB_EVENT_NAME": self.event,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "acme/shop",
            "GITHUB_RUN_ID": "42",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_STEP_SUMMARY": str(self.folder / "step_summary"),
            "GITHUB_WORKSPACE": str(self.work),
            "RUNNER_TEMP": str(self.folder / "temp"),
        }
