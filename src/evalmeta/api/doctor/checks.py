"""One check of `evalmeta doctor` in a process of its own, because agents may hang, exit or print.

The process of a check loads only what this check needs, because a project may have many agents.
`python -m evalmeta.api.doctor.checks` reads a `Task` from stdin and writes a `Finding` to stdout, both as JSON.
"""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.interfaces import DescribedSubject, PreparedSubject, Rating, Rubric, Subject
from evalmeta.engine.raters import bind_rater
from evalmeta.engine.redaction import with_redaction
from evalmeta.engine.subjects.agentforce import AgentforceSubject
from evalmeta.engine.subjects.replay import ReplaySubject
from evalmeta.errors import EvalmetaError, NotFound, StoreLocked
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.login import EMBEDDED
from evalmeta.model.redaction import error_text, redacted
from evalmeta.model.run import Verdict
from evalmeta.model.settings import RulesRater
from evalmeta.org.subjects import bind_settings, bind_subject, trace_port
from evalmeta.package.project import SETTINGS_FILE, Project, find_project
from evalmeta.report.text import and_more, count, file_size

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.model.settings import SubjectSettings
    from evalmeta.store.retention import StoreState


Status = Literal["ok", "warning", "error"]

HELLO: Final = "Hello!"
_SHOWN_CHARS: Final = 60
# Above this size, in bytes, `doctor` says how to make a store smaller.
_LARGE: Final = 1_000_000_000
_PRUNE: Final = "evalmeta test prune --keep 50"
_PROBE_BYTES: Final = 65_536
_SHOWN_NAMES: Final = 5
_DOUBLES: Final = "Write example outputs: evalmeta generate doubles"
_SHOW_STALE: Final = "Show what to do: evalmeta validate"
_RIGHT: Final = Rubric("bot_response_rating", "What is the capital of France?", "Paris.", expected="Paris.")
_WRONG: Final = replace(_RIGHT, actual="Rome.")


class Task(NamedTuple):
    """What to check: an agent, its traces or a rater by its name, other agents, the store of a project, or its tests.

    `agents` are those in the project's files that no settings bind.
    `question` is what to ask agents and raters; None to load them only, and empty for the default, which is not sent to
    agents in Salesforce orgs.
    """

    kind: Literal["agent", "agents", "traces", "rater", "tests", "store"]
    root: str
    name: str = ""
    question: str | None = None


class Finding(NamedTuple):
    """The result of a check, and what to do if it is not ok."""

    status: Status
    message: str
    action: str = ""


class Check(NamedTuple):
    """One line of the report: what was checked, and what was found."""

    subject: str
    finding: Finding


def check(task: Task) -> Finding:
    """Carry out a check; an error of evalmeta becomes a finding."""
    try:
        return _CHECKS[task.kind](find_project(Path(task.root)), task)
    except EvalmetaError as error:
        return finding_of(error)


def finding_of(error: EvalmetaError) -> Finding:
    """Return the finding of an error, with its first way out."""
    return Finding("error", error_text(error), redacted(next(iter(error.actions), "")))


def _check_agent(project: Project, task: Task) -> Finding:
    settings = project.settings.subjects[task.name]
    # Receiving its traces is a check of its own.
    bound = bind_subject(project.settings.subjects, task.name, root=project.root, receives=False)
    subject = with_redaction(bound, project.settings.redact.patterns)
    if task.question is None:
        return Finding("ok", f"{settings.adapter}: can be loaded; it was not asked")
    if isinstance(settings, ReplaySubject):
        return Finding("ok", "replay: the recordings can be read")
    if settings.is_scripted and not task.question:
        return _with_doubles(project, settings, "the files that choose its steps can be read; they answer tests only")
    if isinstance(settings, AgentforceSubject) and not task.question:
        return _check_agent_in_org(bound)
    if isinstance(bound, DescribedSubject) and not task.question:
        return Finding("ok", f"{settings.adapter}: has {run_to_end(bound.describe()).text}")
    question = task.question or HELLO
    answer = run_to_end(_ask(subject, question))
    return _with_doubles(project, settings, f"answered {excerpt(question)} with {excerpt(answer)}")


def _with_doubles(project: Project, settings: SubjectSettings, message: str) -> Finding:
    """Return the finding of an agent that works, or that nothing answers some of its actions."""
    unanswered = [path.stem for path in settings.proposed_doubles(project.root)]
    said = f"{settings.adapter}: {message}"
    if not unanswered:
        return Finding("ok", said)
    names = and_more(unanswered, _SHOWN_NAMES)
    return Finding("warning", f"{said}, but nothing answers its actions {names}", _DOUBLES)


def _check_agents(project: Project, _: Task) -> Finding:
    """Check the agents in files that no settings bind: they are not asked, and run no code of the project."""
    from evalmeta.api.agent_doubles import agents_here

    agents = agents_here(project).items()
    names: list[str] = []
    faults: dict[str, EvalmetaError] = {}
    unanswered: list[str] = []
    for name, settings in agents:
        if name in project.settings.subjects:
            continue
        names.append(name)
        try:
            bind_settings(settings, root=project.root, receives=False)
            unanswered += [f"{name}.{path.stem}" for path in settings.proposed_doubles(project.root)]
        except EvalmetaError as error:
            faults[name] = error
    if faults:
        first = next(iter(faults.values()))
        unusable = and_more(list(faults), _SHOWN_NAMES)
        message = f"{len(faults)} of {count(len(names), 'agent')} cannot be run here ({unusable}): {error_text(first)}"
        return finding_of(first)._replace(status="warning", message=message)
    if unanswered:
        missing = and_more(unanswered, _SHOWN_NAMES)
        return Finding("warning", f"{', '.join(names)}: nothing answers the actions {missing}", _DOUBLES)
    return Finding("ok", f"{', '.join(names)}: can be run, without settings")


def _check_agent_in_org(subject: Subject) -> Finding:
    """Let the org compile a draft; ask no agent, because its actions may be real."""
    if isinstance(subject, PreparedSubject):
        run_to_end(_prepare(subject))
        return Finding("ok", "agentforce: the org compiles the draft; to start a conversation too, use --question TEXT")
    return Finding("ok", "agentforce: not asked, because its actions are real; to ask it, use --question TEXT")


async def _prepare(subject: PreparedSubject) -> None:
    try:
        await subject.prepare()
    finally:
        await subject.close()


async def _ask(subject: Subject, question: str) -> str:
    try:
        session = await subject.open(Case(1, (Turn(question),)))
        try:
            return (await session.ask(question)).outcome
        finally:
            await session.close()
    finally:
        await subject.close()


def excerpt(text: str) -> str:
    """Return the beginning of a text in quotes, as one printable line without secrets."""
    line = "".join(character if character.isprintable() else " " for character in redacted(text))
    return f'"{line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"}"'


def _check_traces(project: Project, task: Task) -> Finding:
    from evalmeta.org.serving.trace_receiver import check_receiver, exporter_lines

    port = trace_port(project.settings.subjects[task.name])
    check_receiver(port)
    if not port:
        return Finding("ok", "can be received at any free port, which the program learns when it is started")
    lines = exporter_lines(port)
    return Finding("ok", f"port {port} is free; the agent needs these variables:\n\n{indent(lines, '  ')}\n")


def _check_rater(project: Project, task: Task) -> Finding:
    settings = project.settings.raters[task.name]
    rater = bind_rater(settings, root=project.root)
    if task.question is None or isinstance(settings, RulesRater):
        return Finding("ok", f"{settings.adapter}: can be loaded")

    async def rate(rubric: Rubric) -> Rating | None:
        given: Rating | Awaitable[Rating] | None = rater(rubric)
        return await given if inspect.isawaitable(given) else given

    async def rate_both() -> tuple[Rating | None, Rating | None]:
        try:
            return await rate(_RIGHT), await rate(_WRONG)
        finally:
            await rater.close()

    right, wrong = run_to_end(rate_both())
    return _finding_of_ratings(task.name, settings.adapter, right, wrong)


def _finding_of_ratings(name: str, adapter: str, right: Rating | None, wrong: Rating | None) -> Finding:
    if right is None or wrong is None or right.score is None or wrong.score is None:
        rating = right if right is None or right.score is None else wrong
        reason = "" if rating is None else f": {redacted(rating.explanation)}"
        return Finding("warning", f"{adapter}: did not rate an answer{reason}", "Correct its model or its url.")
    if right.verdict is Verdict.PASS and wrong.verdict is Verdict.FAILURE:
        ratings = f"rated a correct answer with {right.score:g} of 5, and a wrong one with {wrong.score:g}"
        return Finding("ok", f"{adapter}: {ratings}")
    rubric, rating = (_WRONG, wrong) if right.verdict is Verdict.PASS else (_RIGHT, right)
    answer, question, expected = map(excerpt, (rubric.actual, rubric.utterance, rubric.expected))
    return Finding(
        "warning",
        f"{adapter}: misjudges answers: it rated {answer} to {question} with {rating.score:g} of 5, and {expected} was "
        f"expected: {redacted(rating.explanation)}",
        f"Use another model, or see how often it is right on your own pairs: evalmeta rater check FILE --rater {name}",
    )


def _check_tests(project: Project, task: Task) -> Finding:
    from evalmeta.api.agent_tests import agents_in_folders, read_test
    from evalmeta.api.discovery import find_tests, others_note
    from evalmeta.api.org_targets import default_of, org_of_environment
    from evalmeta.api.quarantines import listed_problems

    try:
        found = find_tests([project.root])
    except NotFound:
        return Finding("warning", "there are no tests in the project", "Write the first ones: evalmeta init")
    invalid, unbound, stale = 0, set(), listed_problems(project)
    for path in found.paths:
        try:
            test = read_test(project, path)
        except EvalmetaError:
            invalid += 1
        else:
            unbound |= {test.subject_name} if test.unbound else set()
            stale += [warning for warning in test.warnings if warning.code == "quarantine-ended"]
    others = others_note(found.others, verbose=False).partition(":")[0]
    files = count(len(found.paths), "file")
    if invalid:
        return Finding("error", f"{files}, {invalid} not valid", "Show the errors: evalmeta validate")
    org = task.name or org_of_environment() or default_of(project)
    if unbound == {""}:
        agent = next(iter(agents_in_folders(project.root)), "MODULE:FUNCTION")
        action = f"Name it when they run: evalmeta run FILE --agent {agent}"
        return Finding("warning", f"{files}, which name no agent", action)
    if (named := sorted(unbound - {""})) and org in {"", EMBEDDED}:
        names, action = (
            ", ".join(named),
            f"To run them in the embedded org, add [subjects.{named[0]}] to {SETTINGS_FILE}.",
        )
        return Finding("warning", f"{files}, which name agents that {SETTINGS_FILE} does not bind: {names}", action)
    if stale:
        return Finding("warning", f"{files}; {and_more([problem.message for problem in stale], 1)}", _SHOW_STALE)
    return Finding("ok", f"{files}, all valid{f'; {others}' if others else ''}")


def _check_store(project: Project, _: Task) -> Finding:
    from evalmeta.api.stores import check_server, check_unsent
    from evalmeta.store.database import open_database
    from evalmeta.store.retention import state_of_store
    from evalmeta.store.sqlite import check_integrity

    folder = project.state_dir
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        # Permissions do not say whether the disk is read-only or full.
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(bytes(_PROBE_BYTES))
    except OSError as error:
        way_out = "Make it writable, free some disk space, or set EVALMETA_HOME to another folder."
        return Finding("error", f"{place} cannot be written: {error.strerror}", way_out)
    is_shared = project.store.url is not None
    if place != folder and not is_shared:
        return Finding("ok", f"the first run creates {folder}")
    is_whole = is_shared or check_integrity(folder)
    with open_database(project.store) as database:
        # While another program writes, this one could write later.
        with suppress(StoreLocked), database.waiting(0), database.transaction():
            pass
        state = state_of_store(database, now=database.now())
        checked = [*(check_server(database) if is_shared else ()), *check_unsent(project.store)]
    if faults := [row for row in checked if row.status != "ok"]:
        worst = next((row for row in faults if row.status == "error"), faults[0])
        return Finding(worst.status, f"{database.name}: {'; '.join(row.message for row in faults)}", worst.action)
    partly = "" if is_whole else f"; in {limits.INTEGRITY_SECONDS:g} s only a part of it could be checked for damage"
    hint = f"; delete old runs: {_PRUNE}" if state.size > _LARGE else ""
    return Finding("ok", f"{database.name}, {_described(state)}{partly}{hint}")


def _described(state: StoreState) -> str:
    """Return the size and growth of a store, such as `5.1 GB, 12 runs since 2026-01-03, about 310 MB in a week`."""
    if state.since is None:
        return f"{file_size(state.size)}, no runs"
    since = datetime.fromtimestamp(state.since, UTC).date()
    return (
        f"{file_size(state.size)}, {count(state.runs, 'run')} since {since}, about {file_size(state.growth)} in a week"
    )


_CHECKS: Final = {
    "agent": _check_agent,
    "agents": _check_agents,
    "traces": _check_traces,
    "rater": _check_rater,
    "tests": _check_tests,
    "store": _check_store,
}


def main() -> None:
    """Carry out the task on stdin, and write the finding to stdout."""
    # Agents may write to stdout in any way.
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)
        try:
            finding = check(Task(*orjson.loads(sys.stdin.buffer.read())))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - code of the project and of packages may raise anything
            finding = Finding("error", error_text(error))
        output.write(orjson.dumps(list(finding)))
        output.flush()
        # Threads of the agent must not keep the process from ending.
        os._exit(0)


if __name__ == "__main__":
    main()
