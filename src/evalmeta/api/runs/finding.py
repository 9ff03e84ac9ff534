"""Finding the run that is meant, by its id or a name such as `latest`, and the org that it is in."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from evalmeta.api.org_targets import EMBEDDED_URL, Target, address_of, choose_target, find_target, is_named
from evalmeta.errors import NotFound, Suggestion, UsageError
from evalmeta.model.registry import MetadataType, type_of_run
from evalmeta.org.serving.server_file import read_server
from evalmeta.report.text import and_more
from evalmeta.store.components import open_receipts
from evalmeta.store.database import Database, open_database
from evalmeta.store.remote_runs import RemoteRun, RemoteRuns, open_remote_runs
from evalmeta.store.run_lists import RunFilter, SuiteRun, newest_named, runs_of_suite
from evalmeta.store.runs import Runs
from evalmeta.store.suites import Suite, Suites, SuiteTest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.package.project import Project


_SHOWN_TESTS: Final = 3
_RUN_ID: Final = re.compile(r"[A-Za-z0-9]{15,18}")
_NAME: Final = re.compile(r"(latest|previous)(?::(.+))?", re.DOTALL)


def is_run_id(text: str) -> bool:
    """Return whether a text may be the id of a run."""
    return _RUN_ID.fullmatch(text) is not None


def is_run_name(text: str) -> bool:
    """Return whether a text is a name for a run instead of its id."""
    return _NAME.fullmatch(text) is not None


def runs_named(project: Project, text: str, *, org_url: str | None = None) -> list[SuiteRun]:
    """Return the runs that a name means, in the order of the tests of their suite.

    `latest` is the newest suite, with runs in any state, and `previous` the suite before it that had one of its tests;
    with the name of a test, such as `latest:Order_Desk`, they are the newest run of that test and the one before it.
    Runs that only asked suspect cases again are left out. `org_url` is the address of the only org to look in, empty
    for the project's own; None for all orgs.
    """
    with open_database(project.store) as database:
        return _suite_named(database, text, org_url)[1]


def run_id_of(project: Project, text: str, *, org_url: str | None = None) -> str:
    """Return the id of a run: a text that is not a name is returned as it is.

    Raises NotFound if the name means no run, and UsageError if it means several, as the name of a suite may.
    """
    if not is_run_name(text):
        return text
    runs = runs_named(project, text, org_url=org_url)
    if len(runs) == 1:
        return runs[0].id
    if not runs:
        start = Suggestion("Start them", "test", "resume", "--unfinished")
        raise NotFound(f"no test of the {text} suite has started", actions=[start])
    tests = and_more([run.definition for run in runs], _SHOWN_TESTS)
    raise UsageError(
        f"{text} is a suite of {len(runs):,} runs, and one run is needed: {tests}",
        actions=[f"Name a test of it: {text}:{runs[0].definition}"],
    )


def _suite_named(database: Database, text: str, org_url: str | None) -> tuple[str, list[SuiteRun]]:
    """Return the suite that a name means, empty if the run has none, and the runs."""
    name = _NAME.fullmatch(text)
    if name is None:
        raise ValueError(text)
    word, test = name.groups()
    runs = newest_named(database, RunFilter(test=test or "", org_url=org_url))
    newest = next(runs, None)
    suite_id, latest = _newest(database, newest, org_url) if test is None else ("", [newest] if newest else [])
    where, actions = "here" if org_url is None else "in this org", [Suggestion("List all runs", "test", "history")]
    if not (suite_id or latest):
        if test is None:
            raise NotFound(f"there is no run {where}", actions=[Suggestion("Run the tests", "run")])
        raise NotFound(f"there is no run of {test} {where}", actions=actions)
    if word == "latest":
        return suite_id, latest
    tests = {_test_of(run) for run in latest} | _saved_tests(database, suite_id)
    for run in runs if test else newest_named(database, RunFilter(org_url=org_url)):
        if _test_of(run) in tests and run not in latest:
            return ("", [run]) if test else (run.suite, _beside(database, run))
    names = and_more([run.definition for run in latest], _SHOWN_TESTS) or "these tests"
    before = f"the latest one, {latest[0].id}" if len(latest) == 1 else "the latest suite"
    raise NotFound(f"there is no run of {names} {where} before {before}", actions=actions)


def _newest(database: Database, newest: SuiteRun | None, org_url: str | None) -> tuple[str, list[SuiteRun]]:
    """Return the suite that began last and its runs; a run without a saved suite began when it started."""
    suites = Suites(database)
    begun = suites.latest(org_url=org_url)
    if newest is not None:
        known = suites.get(newest.suite)
        if begun is None or (known.created if known else newest.started) > begun[1]:
            return newest.suite, _beside(database, newest)
    return (begun[0], runs_of_suite(database, begun[0])) if begun else ("", [])


def _beside(database: Database, run: SuiteRun) -> list[SuiteRun]:
    """Return the runs of a run's suite; only the run itself if it has none."""
    return runs_of_suite(database, run.suite) if run.suite else [run]


def _test_of(run: SuiteRun) -> tuple[MetadataType | None, str]:
    return type_of_run(run.id), run.definition.casefold()


def _saved_tests(database: Database, suite_id: str) -> set[tuple[MetadataType | None, str]]:
    suite = Suites(database).get(suite_id)
    return {(test.kind, test.name.casefold()) for test in suite.tests} if suite else set()


@dataclass(frozen=True, slots=True)
class RunHandle:
    """A run that was started, now or by an earlier command, and where it is.

    Attributes:
        org_url: the org's address.
        target: the org, if its login is known already; None for the embedded org.
        remote: what is saved of a run of another org than the project's own.
        definition: the name of its test; empty if it is not known.
        iterations: how often each case is run; 0 if some run more often than others.
    """

    project: Project
    id: str
    org_url: str = EMBEDDED_URL
    target: Target | None = None
    remote: RemoteRun | None = None
    definition: str = ""
    iterations: int = 1

    @property
    def stored_at(self) -> str:
        """Return the address under which the project's database has the run; empty for the project's own org."""
        return self.remote.org_url if self.remote else ""


@dataclass(frozen=True, slots=True)
class SuiteHandle:
    """What one command started, now or earlier: its runs in the order of its tests, and the suite that it saved.

    A run without a saved suite is a suite of one.
    """

    project: Project
    runs: tuple[RunHandle, ...]
    saved: Suite | None = None
    target: Target | None = None

    @property
    def org_url(self) -> str:
        """Return the address of the org with the suite."""
        return self.runs[0].org_url if self.runs else address_of(self.target)

    @property
    def due(self) -> tuple[SuiteTest, ...]:
        """Return the tests that never started and should."""
        return self.saved.of("due") if self.saved else ()

    @property
    def run_ids(self) -> list[str]:
        """Return the ids of its runs."""
        return [run.id for run in self.runs]


def alone(run: RunHandle) -> SuiteHandle:
    """Return a run as a suite of one."""
    return SuiteHandle(run.project, (run,), None, run.target)


def is_elsewhere(project: Project, target: Target | None) -> bool:
    """Return whether an org is not the project's own, embedded or served."""
    if target is None:
        return False
    server = read_server(project.state_dir)
    return server is None or server.url != target.login.url


def locate(project: Project, run_id: str | None, *, named: str | None = None) -> RunHandle:
    """Find the org that a run is in: the named one, or else the one that has the run.

    `run_id` is the run, or its name as for `run_id_of`; None is the most recent one in the named org, or in any.
    `named` is the name that was given for the org, as in `choose_target`.
    """
    if is_named(named):
        target = choose_target(project, named)
        url = address_of(target)
        if run_id is not None:
            run_id = run_id_of(project, run_id, org_url=url if is_elsewhere(project, target) else "")
        return _at(project, url, run_id or _most_recent(project, url)[1], target)
    if run_id is None:
        url, run_id = _most_recent(project)
        # Runs that the project's own server started are in the project's own org.
        urls = _urls_of(project, run_id)
        return _at(project, EMBEDDED_URL if EMBEDDED_URL in urls and url not in urls else url, run_id)
    run_id = run_id_of(project, run_id)
    target = choose_target(project)
    urls = _urls_of(project, run_id)
    if not urls or address_of(target) in urls:
        return _at(project, address_of(target), run_id, target)
    return _at(project, urls[0], run_id)


def locate_suite(
    project: Project, name: str | None, *, named: str | None = None, is_whole: bool = False
) -> SuiteHandle:
    """Find the suite that a name means, or a run by its id, and the org that they are in.

    `name` and `named` are as for `locate`; the names `latest` and `previous` mean a whole suite, and so does one of
    its runs if `is_whole` is set.
    """
    if name is not None and is_run_name(name):
        target = choose_target(project, named) if is_named(named) else None
        org_url = None if not is_named(named) else address_of(target) if is_elsewhere(project, target) else ""
        with open_database(project.store) as database:
            suite_id, runs = _suite_named(database, name, org_url)
        return _located(project, suite_id, runs, named=named)
    first = locate(project, name, named=named)
    with open_database(project.store) as database:
        suite_id = _suite_of(database, first) if is_whole else ""
        runs = runs_of_suite(database, suite_id) if suite_id else []
    return _located(project, suite_id, runs, named=named) if runs else alone(first)


def unfinished_suites(project: Project, *, named: str | None = None, stopped: bool = False) -> list[SuiteHandle]:
    """Find the suites with runs in the project's own org that are not over, or with tests that never started.

    With `stopped`, a run that stopped after too many errors counts as not over, unless its test was completed later.
    """
    with open_database(project.store) as database:
        stored = Runs(database)
        run_ids = [*(run_id for run_id, _ in stored.unfinished()), *(stored.stopped() if stopped else ())]
        runs = [locate(project, run_id, named=named) for run_id in run_ids]
        of_runs = [(_suite_of(database, run), run) for run in runs]
        suite_ids = dict.fromkeys([suite_id for suite_id, _ in of_runs if suite_id] + Suites(database).unfinished())
        suites = [(suite_id, runs_of_suite(database, suite_id)) for suite_id in suite_ids]
    single = [alone(run) for suite_id, run in of_runs if not suite_id]
    return [*single, *(_located(project, suite_id, runs, named=named) for suite_id, runs in suites)]


def _located(project: Project, suite_id: str, runs: Sequence[SuiteRun], *, named: str | None) -> SuiteHandle:
    with open_database(project.store) as database:
        saved = Suites(database).get(suite_id)
    if runs:
        first = locate(project, runs[0].id, named=named)
        handles = [first, *(_in_org_of(first, run) for run in runs[1:])]
        return SuiteHandle(project, tuple(handles), saved, first.target)
    target = choose_target(project, named)
    if saved and saved.org_url:
        target = target if address_of(target) == saved.org_url else find_target(saved.org_url, saved.org_name)
    elif is_elsewhere(project, target):
        target = None
    return SuiteHandle(project, (), saved, target)


def _in_org_of(first: RunHandle, run: SuiteRun) -> RunHandle:
    """Return another run of a suite, which is in the same org."""
    if first.remote is None:
        return replace(first, id=run.id, definition=run.definition)
    return _at(first.project, first.org_url, run.id, first.target)


def _suite_of(database: Database, run: RunHandle) -> str:
    """Return the suite of a run; empty if it has none, or asked suspect cases of another run again."""
    stored = run.remote.run if run.remote else Runs(database).get(run.id)
    return "" if stored is None or stored.options.confirms else stored.options.origin.suite


def is_here(project: Project, run_id: str) -> bool:
    """Return whether a run is in the project's own org."""
    return EMBEDDED_URL in _urls_of(project, run_id)


def target_of(run: RunHandle) -> Target | None:
    """Return the org of a run, None for the embedded one; raises like `find_target`."""
    if run.target is not None or run.org_url == EMBEDDED_URL:
        return run.target
    return find_target(run.org_url, run.remote.org_name if run.remote else "")


def _at(project: Project, url: str, run_id: str, target: Target | None = None) -> RunHandle:
    with open_remote_runs(project.store) as runs:
        remote = next(iter(runs.find(run_id, org_url=url)), None)
    return RunHandle(project, remote.run.id if remote else run_id, url, target, remote)


def _urls_of(project: Project, run_id: str) -> list[str]:
    """Return the addresses of the orgs that are known to have a run, the project's own first."""
    with open_database(project.store) as database:
        own = [EMBEDDED_URL] if Runs(database).get(run_id) else []
        return [*own, *(run.org_url for run in RemoteRuns(database).find(run_id))]


def _most_recent(project: Project, url: str = "") -> tuple[str, str]:
    """Return the address and id of the project's most recent run in an org, or in any org."""
    with open_receipts(project.store, root=project.root, org_url=url) as receipts:
        if not url:
            found = receipts.latest_anywhere("test")
        else:
            run_id = receipts.latest("test")
            found = (url, run_id) if run_id else None
    if found is None:
        where = " in this org" if url else ""
        raise NotFound(f"no run of this project{where} is known", actions=["Name it: --job-id"])
    return found
