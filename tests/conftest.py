"""What holds for every test: no home directory, no network beyond loopback, a clean environment.

With EVALMETA_TESTS_ON=direct or pooled, the store of each test is a schema of Postgres, reached directly or through
PgBouncer.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from examples import DEFAULT_EXAMPLES, EXAMPLES, at_most

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _pytest.terminal import TerminalReporter

    from postgres_servers import PostgresServers, PostgresStore

# A script that starts the tests in the background has them, and what they start, ignore Ctrl-C; nohup SIGHUP.
signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.platform != "win32":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Examples have no deadline: a busy machine is not a defect. Tests that need more than 100 examples say so themselves.
settings.register_profile(
    "evalmeta", max_examples=at_most(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("evalmeta")

PROMISES = Path(__file__).parent.parent / "docs" / "reliability.md"
PROMISE = re.compile(r"^\| ([A-Z]\d+) \| ([^|]+) \| (.+) \|$", re.MULTILINE)
SAMPLES = Path(__file__).parent.parent / "metadata-samples"
_LEFT_BEHIND = shutil.ignore_patterns(".evalmeta", "__pycache__")
LONG = ("slow", "npm", "browser", "postgres")
TESTS_ON = os.environ.get("EVALMETA_TESTS_ON", "")
LONG_SECONDS = 1_800
_ENVIRONMENT = (
    *("EVALMETA_HOME", "EVALMETA_STORE", "EVALMETA_CLIENT_SECRET", "EVALMETA_SAFE_FOLDERS"),
    *("XDG_CONFIG_HOME", "BROWSER", "PYTHONPATH"),
    *("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"),
    *("SF_TARGET_ORG", "SF_ACCESS_TOKEN", "SF_ORG_INSTANCE_URL", "SF_ORG_API_VERSION", "SF_AUDIENCE_URL"),
)


class FailureLines:
    """Names each failed test at once: a run that is stopped before its end has no summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:
            error = next((line for line in report.longreprtext.splitlines() if line.startswith("E  ")), "")
            reporter.write(f"\nFAILED {report.nodeid} {error}\n", red=True)


def pytest_configure(config: pytest.Config) -> None:
    """Run a test that the command line names by its id, also when it is marked slow; name failed tests at once."""
    if any("::" in argument for argument in config.args):
        config.option.markexpr = ""
    config.pluginmanager.register(FailureLines(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that use Postgres, and give tests that need long more time than the setting `timeout`.

    So do all tests where they draw more examples. On Postgres, tests of SQLite are left out.
    """
    if TESTS_ON:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("sqlite")])
        items[:] = [item for item in items if not item.get_closest_marker("sqlite")]
    for item in items:
        if "postgres_servers" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgres)
        if EXAMPLES > DEFAULT_EXAMPLES or any(item.get_closest_marker(name) for name in LONG):
            item.add_marker(pytest.mark.timeout(LONG_SECONDS))


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Print what tests have counted, also when other processes ran them, and all promises if all tests ran."""
    said: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "said":
                said.setdefault(report.nodeid.partition("[")[0], []).append(str(value))
                terminalreporter.write_line(f"{report.nodeid}: {value}")
    if _is_everything(terminalreporter.config):
        terminalreporter.write_sep("=", "promises of docs/reliability.md")
        for promise in _promises(terminalreporter):
            figures = "; ".join(text for test in promise.tests for text in said.get(test, []))
            verdict = f"{promise.passed:,} passed" + (f", {promise.failed:,} FAILED" if promise.failed else "")
            shown = verdict if promise.tests else "not a test"
            terminalreporter.write_line(f"{promise.row}  {shown:<14} {promise.promise}. {figures}".rstrip())


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if all tests ran, but none of those that hold a promise."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and _is_everything(session.config):
        unheld = [promise.row for promise in _promises(reporter) if promise.tests and not promise.passed]
        if unheld and session.exitstatus == pytest.ExitCode.OK:
            reporter.write_line(f"no test of these promises passed: {', '.join(unheld)}")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _is_everything(config: pytest.Config) -> bool:
    chosen = (
        config.option.keyword or config.getoption("lf", False) or config.args_source is not config.ArgsSource.TESTPATHS
    )
    return not chosen and "slow or not slow" in config.option.markexpr


class Promise(NamedTuple):
    """A row of docs/reliability.md: its tests, and how many passed and failed with all their parameters."""

    row: str
    promise: str
    tests: list[str]
    passed: int
    failed: int


def _promises(reporter: TerminalReporter) -> list[Promise]:
    counts = [
        Counter(report.nodeid.partition("[")[0] for report in reporter.stats.get(outcome, []))
        for outcome in ("passed", "failed")
    ]
    found = []
    for row, promise, held in PROMISE.findall(PROMISES.read_text(encoding="utf-8")):
        tests = re.findall(r"`(tests/\S+?)`", held)
        found.append(Promise(row, promise, tests, *(sum(count[test] for test in tests) for count in counts)))
    return found


@pytest.fixture(scope="session", autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    # The key that signs tokens is made with the first token; servers of whole modules need the same.
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state-home"))
        yield


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in _ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    unusable = tmp_path_factory.getbasetemp() / "no-home"
    unusable.touch()
    monkeypatch.setenv("HOME", str(unusable))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    # Half of the time in which a pytest that a test starts becomes ready.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:randomly -p no:anyio")


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(this: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else "127.0.0.1"
        if host not in {"127.0.0.1", "::1", "localhost"}:
            raise AssertionError(f"a test tried to reach {host}")
        connect(this, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def copy_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Copies the sample project, or one of those inside it, to a place of its own and goes there."""

    def copy(inner: str = "") -> Path:
        target = tmp_path / "project"
        shutil.copytree(SAMPLES / inner, target, ignore=_LEFT_BEHIND)
        monkeypatch.chdir(target)
        return target

    return copy


@pytest.fixture
def program() -> list[str]:
    """Gives the words that start evalmeta as a program of its own."""
    scripts = Path(sys.executable).parent
    return [str(scripts / "evalmeta")]


@pytest.fixture(scope="session")
def postgres_servers() -> Iterator[PostgresServers]:
    """Postgres and PgBouncer, which all tests of this process share."""
    from postgres_servers import postgres_servers

    with postgres_servers() as servers:
        yield servers


@pytest.fixture
def postgres_store(postgres_servers: PostgresServers) -> Iterator[PostgresStore]:
    """A role with an empty schema of its own."""
    with postgres_servers.store() as store:
        yield store
        # PgBouncer accepts only so many connections, and this process keeps some of each store.
        if connections := sys.modules.get("evalmeta.store.postgres_connections"):
            from evalmeta.model.store import read_store_url

            for address in (store.direct, store.pooled):
                connections.pool_of(read_store_url(address)).close()


@pytest.fixture(params=["direct", "pooled"])
def store_url(request: pytest.FixtureRequest, postgres_store: PostgresStore) -> str:
    """The address of an empty store: once of Postgres itself, and once of PgBouncer."""
    return str(getattr(postgres_store, request.param))


@pytest.fixture(autouse=True)
def _tests_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _clean_environment: None) -> None:
    if TESTS_ON:
        store = request.getfixturevalue("postgres_store")
        monkeypatch.setenv("EVALMETA_STORE", getattr(store, TESTS_ON))
