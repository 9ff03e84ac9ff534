"""Stores that a word names: checked, brought up to date and copied, through `evalmeta store`."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

from cli.conftest import evalmeta  # noqa: F401 - a fixture
from evalmeta import limits
from evalmeta.api.stores import check_server, with_store
from evalmeta.errors import UsageError
from evalmeta.model.store import STORE_VARIABLE
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database
from store.filled import all_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome
    from evalmeta.store.database import Database

    Evalmeta = Callable[..., Outcome]

pytestmark = pytest.mark.sqlite  # they read and damage a folder's store

PASSWORD = "canary-password-0123"  # noqa: S105 - it must not be shown
AGENT = "def answer(utterance):\n    return {'topic': 'Orders', 'outcome': 'It arrives on Tuesday.'}\n"
SPEC = "subject: desk:answer\ncases:\n- {input: When?, topic: Orders}\n- {input: Where?, topic: Orders}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").touch()
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "orders.yaml").write_text(SPEC)
    return tmp_path


@pytest.fixture
def file(project: Path, evalmeta: Evalmeta) -> Path:  # noqa: F811 - the fixture
    """The file of a store with one run of two cases."""
    assert evalmeta("run", "orders.yaml").code == 0
    return project / ".evalmeta" / "org.sqlite3"


def test_a_store_that_does_not_exist_is_no_error_and_is_not_made_by_a_check(
    project: Path,
    evalmeta: Evalmeta,  # noqa: F811
) -> None:
    checked = evalmeta("store", "check")
    assert (checked.code, "does not exist yet; the first run creates it" in checked.out) == (0, True)
    assert not (project / ".evalmeta").exists()


@pytest.mark.usefixtures("project")
def test_a_migration_says_both_layouts_and_a_second_one_that_nothing_changed(evalmeta: Evalmeta) -> None:  # noqa: F811
    migrated = json.loads(evalmeta("store", "migrate", "other", "--json").out)["result"]
    assert migrated["before"] == 0 < migrated["after"]
    assert f"layout 0 is now layout {migrated['after']}" in evalmeta("store", "migrate").out
    assert f"is up to date: layout {migrated['after']}" in evalmeta("store", "migrate").out


def test_a_whole_store_is_checked_without_a_finding(file: Path, evalmeta: Evalmeta) -> None:  # noqa: F811
    assert file.exists()
    checked = evalmeta("store", "check")
    assert (checked.code, "rows: 1 run with 2 results" in checked.out) == (0, True)
    assert {line.split()[0] for line in checked.out.splitlines()} == {"ok"}


@pytest.mark.usefixtures("file")
def test_a_check_that_ran_out_of_time_says_how_many_results_it_read(
    monkeypatch: pytest.MonkeyPatch,
    evalmeta: Evalmeta,  # noqa: F811
) -> None:
    monkeypatch.setattr(limits, "INTEGRITY_SECONDS", -1)
    assert "1 run with 2 results (1 of them read)" in evalmeta("store", "check").out


def test_results_that_wait_on_this_machine_are_a_warning_with_the_command_that_sends_them(
    file: Path,
    evalmeta: Evalmeta,  # noqa: F811
) -> None:
    (file.parent / "unsent").mkdir()
    (file.parent / "unsent" / "4KB7-12ab.results").touch()
    checked = evalmeta("store", "check")
    assert checked.code == 0
    assert "warning  unsent: results of 4KB7 wait on this machine" in checked.out
    assert "test resume --unfinished" in checked.out


@pytest.mark.parametrize(
    ("change", "damage"),
    [
        ("UPDATE case_result SET run_id = run_id || '1'", "2 results without their run, 1 completed runs without all"),
        ("DELETE FROM case_result WHERE number = 1", "1 completed runs without all their results"),
        ("UPDATE run SET content_sha256 = 'lost'", "1 runs without the content of their test"),
        ("UPDATE case_result SET body = x'7b' WHERE number = 1", "1 results that cannot be read"),
    ],
)
def test_rows_that_do_not_belong_together_are_an_error(
    file: Path,
    evalmeta: Evalmeta,  # noqa: F811
    change: str,
    damage: str,
) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(change)
    report = json.loads(evalmeta("store", "check", "--json").out)
    *others, rows = report["result"]["checks"]
    assert (report["status"], rows["status"]) == (1, "error")
    assert damage in rows["message"]
    assert rows["action"] == "Copy what is left to another store, or restore a backup."
    assert {check["status"] for check in others} == {"ok"}


def test_a_damaged_file_is_one_error_and_exit_code_1(file: Path, evalmeta: Evalmeta) -> None:  # noqa: F811
    content = bytearray(file.read_bytes())
    content[4096:8192] = bytes(4096)
    file.write_bytes(content)
    checked = evalmeta("store", "check")
    assert (checked.code, checked.out.split()[0]) == (1, "error")
    assert "is not a valid database" in checked.out


def test_a_copy_has_all_rows_and_a_second_one_copies_nothing(file: Path, evalmeta: Evalmeta) -> None:  # noqa: F811
    copied = evalmeta("store", "copy", "local", "backup")
    assert copied.err.startswith("Copied and verified ")
    assert ["case_result", "2"] in [line.split()[:2] for line in copied.out.splitlines()]
    with open_database(file.parent) as before, open_database(file.parent.parent / "backup") as after:
        assert all_rows(after) == all_rows(before)
    again = json.loads(evalmeta("store", "copy", "local", "backup", "--json").out)["result"]
    assert (again["copied"], again["rows"]) == (False, sum(table["rows"] for table in again["tables"]))
    assert evalmeta("store", "copy", "local", "backup").err.startswith("Nothing was copied: ")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("nowhere", "local"), "there is no store in"),
        (("local", ".evalmeta"), "cannot be copied to itself"),
        (("local", "."), "is not a state folder\n"),
        (("shared", "local"), f"Set {STORE_VARIABLE}, or url in [store]"),
        (("local", f"postgresql://ada:{PASSWORD}@127.0.0.1:9/team"), "a password was given on the command line"),
        (("local", f"mysql://ada:{PASSWORD}@127.0.0.1:9/team"), "begins with 'mysql:'"),
    ],
)
def test_other_stores_are_refused_and_no_password_is_shown(
    file: Path,
    evalmeta: Evalmeta,  # noqa: F811
    words: tuple[str, str],
    reason: str,
) -> None:
    before = file.read_bytes()
    refused = evalmeta("store", "copy", *words)
    assert refused.code == 2
    assert reason.strip() in refused.err
    assert PASSWORD not in refused.out + refused.err
    assert file.read_bytes() == before


@pytest.mark.usefixtures("project")
def test_a_shared_store_that_cannot_be_reached_is_an_error_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
    evalmeta: Evalmeta,  # noqa: F811
) -> None:
    monkeypatch.setenv(STORE_VARIABLE, f"postgresql://ada:{PASSWORD}@127.0.0.1:9/team")
    for words in (("store", "check"), ("store", "check", "shared")):
        checked = evalmeta(*words)
        assert (checked.code, checked.out.startswith("error    store: postgresql://127.0.0.1:9")) == (1, True)
        assert PASSWORD not in checked.out + checked.err


def test_a_project_can_be_read_with_a_database_and_not_with_another_folder(project: Path) -> None:
    url = "postgresql://ada@db.example.com/team"
    shared = with_store(find_project(project), url)
    assert shared.store.url is not None
    assert "db.example.com" in str(shared.store.url)
    assert with_store(shared, "local").store.url is None
    with pytest.raises(UsageError, match="other is not a shared store") as caught:
        with_store(shared, "other")
    assert caught.value.actions == (f"Set EVALMETA_HOME to the folder: {project / 'other'}",)


@dataclass(frozen=True)
class Server:
    """What a server answers; tests with the marker `postgres` ask a real one."""

    is_unsafe: bool = False
    is_late: bool = False
    is_superuser: bool = False
    may_create: bool = True
    may_copy: bool = True
    refused: tuple[str, ...] = ()
    ahead: float = 0.0

    def query(self, sql: str) -> list[tuple[object, ...]]:
        if "pg_class" in sql:
            return [(table,) for table in self.refused]
        rights = (self.is_superuser, self.may_create, self.may_copy)
        return [("17.2", "team", "ada", self.is_unsafe, self.is_late, *rights)]

    def now(self) -> float:
        return time.time() + self.ahead


@pytest.mark.parametrize(
    ("server", "findings"),
    [
        (Server(), {"privileges": "ok: all that runs need; the role may change the layout"}),
        (Server(may_create=False), {"privileges": "ok: all that runs need; the role may not change the layout"}),
        (Server(is_unsafe=True), {"durability": "warning: fsync or full_page_writes is off"}),
        (Server(is_late=True), {"durability": "warning: synchronous_commit is off"}),
        (Server(is_superuser=True), {"privileges": "warning: the role is a superuser"}),
        (Server(may_copy=False), {"privileges": "error: the role lacks TEMPORARY on the database"}),
        (
            Server(refused=("mark", "run"), is_superuser=True),
            {"privileges": "error: the role lacks SELECT, INSERT, UPDATE and DELETE on mark, SELECT"},
        ),
        (Server(ahead=60), {"clock": "warning: the server is 60.0 s ahead of this machine"}),
        (Server(ahead=-60), {"clock": "warning: the server is 60.0 s behind this machine"}),
    ],
)
def test_what_makes_a_server_unsafe_or_unusable_is_a_finding_with_its_remedy(
    server: Server, findings: dict[str, str]
) -> None:
    checks = {check.subject: check for check in check_server(cast("Database", server))}
    assert checks["server"].message == "Postgres 17.2, schema team, role ada"
    for subject, text in findings.items():
        check = checks.pop(subject)
        assert f"{check.status}: {check.message}".startswith(text)
        assert bool(check.action) is (check.status != "ok")
    assert {check.status for check in checks.values()} == {"ok"}
