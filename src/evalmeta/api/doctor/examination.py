"""Whether everything that tests need works: Python, extras, settings, tests, agents, raters, the store and the org."""

from __future__ import annotations

import os
import platform
import shlex
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Self

import orjson

from evalmeta import limits
from evalmeta.api.agent_doubles import agents_here
from evalmeta.api.doctor.checks import Check, Finding, Task, finding_of
from evalmeta.api.doctor.org import examine_org
from evalmeta.api.org_targets import Target, choose_target
from evalmeta.errors import EvalmetaError, ProjectError, SettingsError
from evalmeta.model.redaction import address_in_words, child_environment, hide_secrets, redacted
from evalmeta.org.subjects import receives_traces
from evalmeta.package.project import SETTINGS_FILE, Project, find_project
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


EXTRAS: Final = {
    "archive": ("fsspec", "pyarrow"),
    "databricks": ("pandas", "pyarrow"),
    "keyring": ("keyring",),
    "llm": ("pydantic_ai", "openai"),
    "oauth": ("joserfc",),
    "otel": ("opentelemetry.proto", "opentelemetry.sdk"),
    "postgres": ("psycopg",),
    "ray": ("ray",),
}
"""The modules of each extra of the package."""

_PROCESSES: Final = 4
# What to do about an error that does not say it.
_ACTIONS: Final = {
    "agent": f"Correct the agent, or [subjects.{{name}}] in {SETTINGS_FILE}.",
    "rater": f"Correct [raters.{{name}}] in {SETTINGS_FILE}.",
}
# What is done with the value of a key of an agent or a rater.
_DOES: Final = {"target": "imports", "command": "starts", "url": "calls"}
_INIT: Final = "Start a project: evalmeta init"


def examine(
    start: Path,
    *,
    question: str | None = "",
    target_org: str | None = None,
    is_smoke: bool = False,
    timeout: float = limits.DOCTOR_SECONDS,
) -> Iterator[Check]:
    """Check everything that the tests of a project need, and yield each result in a fixed order.

    `question` is what to ask agents and raters; None asks nothing, and an empty text is the default question, which
    is not sent to agents in Salesforce orgs. Another text implies `is_smoke` in a remote org. `target_org` is the org
    to check; None for the project's default. `is_smoke` starts the smallest deployed test in the org, and cancels it
    after its first answer. `timeout` is the time limit of each check, in seconds.
    """
    yield Check("Python", Finding("ok", f"{platform.python_version()} ({sys.executable}), evalmeta {__version__}"))
    yield Check("extras", _extras())
    try:
        project = find_project(start)
    except ProjectError as error:
        yield Check("project", finding_of(error)._replace(status="warning", action=_INIT))
        return
    except SettingsError as error:
        yield Check("settings", finding_of(error))
        return
    org: Target | Finding | None
    try:
        org = choose_target(project, target_org)
    except EvalmetaError as error:
        org = finding_of(error)
    yield from _of_project(project, runs_here=org is None)
    yield from _announced(project, question)
    is_broken = False
    tasks = list(_tasks(project, question, target_org))
    with _Processes(timeout) as processes:
        findings = processes.run([task for _, task in tasks])
        for (name, task), finding in zip(tasks, findings, strict=True):
            action = finding.action or (_ACTIONS.get(task.kind, "") if finding.status == "error" else "")
            yield Check(name, finding._replace(action=action.replace("{name}", task.name)))
            is_broken |= task.kind == "agent" and finding.status == "error"
    if isinstance(org, Finding):
        yield Check("org", org)
        return
    # Agents of the embedded org have been asked the question already.
    is_asked = is_smoke and not is_broken if org is None else is_smoke or bool(question)
    yield from examine_org(project, org, is_smoke=is_asked, timeout=timeout)
    if is_smoke and not is_asked:
        yield Check("smoke", Finding("warning", "not asked, because an agent cannot be used"))


def _extras() -> Finding:
    installed = [name for name, modules in EXTRAS.items() if all(map(_is_installed, modules))]
    missing = [name for name in EXTRAS if name not in installed]
    texts = [f"installed: {', '.join(installed)}"] if installed else []
    texts += [f"not installed: {', '.join(missing)}"] if missing else []
    return Finding("ok", "; ".join(texts))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The package around it.
        return False


def _of_project(project: Project, *, runs_here: bool) -> Iterator[Check]:
    kind = "a Salesforce DX project" if project.is_dx else "a folder"
    yield Check("project", Finding("ok", f"{project.root} ({kind})"))
    if project.declared is None and not runs_here:
        yield Check("settings", Finding("ok", f"there is no {SETTINGS_FILE}"))
        return
    if project.declared is None:
        yield Check("settings", Finding("warning", f"there is no {SETTINGS_FILE}, so no agent is bound", _INIT))
        return
    yield Check("settings", Finding("ok", f"{project.root / SETTINGS_FILE}"))
    if runs_here and not project.declared.subjects:
        action = "Add [subjects.NAME], or see what to write: evalmeta init"
        yield Check("agents", Finding("warning", f"{SETTINGS_FILE} binds no agent", action))


def _announced(project: Project, question: str | None) -> Iterator[Check]:
    """Yield what the checks import, start and ask, before they do it: a checkout may be of others."""
    settings = project.settings
    does = [
        f"{verb} {hide_secrets(shlex.join(value) if isinstance(value, tuple) else address_in_words(value))}"
        for adapter in (*settings.subjects.values(), *settings.raters.values())
        for name, verb in _DOES.items()
        if (value := getattr(adapter, name, None))
    ]
    does = [*dict.fromkeys(does)]
    if does:
        who = "it" if len(does) == 1 else "each"
        asked = "nothing is asked" if question is None else f"{who} is asked a question"
        yield Check("next", Finding("ok", f"{', '.join(does)}; {asked}"))


def _tasks(project: Project, question: str | None, target_org: str | None) -> Iterator[tuple[str, Task]]:
    root = str(project.root)
    yield "tests", Task("tests", root, target_org or "")
    for name, settings in project.settings.subjects.items():
        yield f"agent {name}", Task("agent", root, name, question)
        if receives_traces(settings):
            yield f"traces {name}", Task("traces", root, name)
    if agents_here(project).keys() - project.settings.subjects.keys():
        yield "agents in files", Task("agents", root)
    for name in project.settings.raters:
        yield f"rater {name}", Task("rater", root, name, question)
    yield "store", Task("store", root)


class _Processes:
    """Processes that carry out checks; those that still run are killed at the end."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._pool = ThreadPoolExecutor(_PROCESSES)
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, tasks: Sequence[Task]) -> Iterator[Finding]:
        """Return the findings in the order of the tasks."""
        return self._pool.map(self._run, tasks)

    def _run(self, task: Task) -> Finding:
        # -P: a file of the project must not replace a module of the standard library with the same name.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "evalmeta.api.doctor.checks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=task.root,
            env=child_environment() if task.kind in {"agent", "rater"} else None,
            start_new_session=True,
        )
        self._running.add(process)
        try:
            output, errors = process.communicate(orjson.dumps(list(task)), timeout=self._timeout)
        except subprocess.TimeoutExpired:
            what = f"did not end within {self._timeout:g} s"
            return Finding("error", what, "Find out what it waits for, or allow more time: --timeout SECONDS")
        finally:
            self._end(process)
        try:
            return Finding(*orjson.loads(output))
        except (orjson.JSONDecodeError, TypeError):
            last = errors.decode(errors="replace").strip().rpartition("\n")[2]
            reason = f": {redacted(last)}" if last else ""
            return Finding("error", f"the process ended with exit code {process.returncode}{reason}")

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a process with those that it started."""
        self._running.discard(process)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in list(self._running):
            self._end(process)
