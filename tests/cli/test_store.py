"""`evalmeta store`: migrate, check and copy."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from evalmeta.model.login import ADMIN
from evalmeta.model.store import STORE_VARIABLE
from evalmeta.store.database import open_database
from evalmeta.store.users import Holder, Sessions
from postgres_servers import free_port
from store.filled import all_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome
    from evalmeta.store.sql import Row
    from postgres_servers import PostgresServers, PostgresStore

    Evalmeta = Callable[..., Outcome]

pytestmark = pytest.mark.slow  # each fills a store; tests/store/test_copying.py is quick

PASSWORD = "canary-password-0123"  # noqa: S105 - it must not be shown
AGENT = "def answer(utterance):\n    return {'topic': 'Orders', 'outcome': 'It arrives on Tuesday.'}\n"
SPEC = "subject: desk:answer\ncases:\n- input: When?\n  expectedOutcome: It arrives on Monday.\n  topic: Orders\n"
USED = {"access_token", "case_result", "component", "content", "counter", "job", "mark", "org_user", "run", "suite"}


@pytest.fixture
def project(copy_samples: Callable[[str], Path], evalmeta: Evalmeta) -> Path:
    """A project whose store has something of all that people make."""
    root = copy_samples("")
    (root / "desk.py").write_text(AGENT)
    (root / "orders.yaml").write_text(SPEC)
    assert evalmeta("deploy").code == 0
    evalmeta("test", "run", "--wait", "10")
    assert evalmeta("run", "orders.yaml").code == 100
    note = ("--note", "Tuesday is fine")
    case = ("--job-id", "latest", "--case", "1", "--expectation", "Response")
    assert evalmeta("test", "mark", "wrong", *case, *note).code == 0
    assert evalmeta("org", "token", "--user", "ci").code == 0
    with open_database(root / ".evalmeta") as database:
        Sessions(database).add(Holder(ADMIN.id), now=time.time())
        database.execute("INSERT INTO rating VALUES ('key', '{}', 1)")
    return root


def rows(folder: Path) -> dict[str, list[Row]]:
    with open_database(folder) as database:
        return all_rows(database)


def test_a_store_that_is_copied_has_all_of_it(project: Path, evalmeta: Evalmeta) -> None:
    before = rows(project / ".evalmeta")
    assert {name for name, stored in before.items() if stored} >= USED
    shown = evalmeta("test", "list", "--json").out
    copied = evalmeta("store", "copy", "local", "backup")
    assert copied.code == 0
    assert copied.err.startswith("Copied and verified ")
    assert f"case_result {len(before['case_result']):>14,}" in copied.out
    assert rows(project / "backup") == before
    assert not (project / "backup" / ".evalmeta").exists()
    again = evalmeta("store", "copy", "local", "backup")
    assert (again.code, again.out) == (0, copied.out)
    assert again.err.startswith("Nothing was copied: ")
    (project / ".evalmeta").rename(project / "before")
    (project / "backup").rename(project / ".evalmeta")
    assert evalmeta("test", "list", "--json").out == shown


def test_what_was_copied_is_one_json_object(project: Path, evalmeta: Evalmeta) -> None:
    result = json.loads(evalmeta("store", "copy", "local", "backup", "--json").out)["result"]
    counts = {name: len(stored) for name, stored in rows(project / ".evalmeta").items()}
    assert {table["name"]: table["rows"] for table in result["tables"]} == counts
    assert (result["copied"], result["rows"]) == (True, sum(counts.values()))


def test_a_target_with_other_rows_is_refused(project: Path, evalmeta: Evalmeta) -> None:
    evalmeta("store", "copy", "local", "backup")
    evalmeta("run", "orders.yaml")
    before = rows(project / "backup")
    refused = evalmeta("store", "copy", "local", "backup")
    assert refused.code == 2
    assert "is not empty, and differs" in refused.err
    assert rows(project / "backup") == before


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("nowhere", "local"), "there is no store in"),
        (("local", "local"), "cannot be copied to itself"),
        (("local", ".evalmeta"), "cannot be copied to itself"),
        (("local", "."), "is not a state folder"),
        (("shared", "local"), "no shared store is configured"),
        (("local", f"postgresql://ada:{PASSWORD}@127.0.0.1:9/team"), "a password was given on the command line"),
        (("local", f"postgresql://127.0.0.1:9/team?user=ada&password={PASSWORD}"), "a password was given"),
        (("local", f"mysql://ada:{PASSWORD}@127.0.0.1:9/team"), "begins with 'mysql:'"),
    ],
)
def test_other_stores_are_refused_and_no_password_is_shown(
    project: Path, evalmeta: Evalmeta, words: tuple[str, str], reason: str
) -> None:
    before = rows(project / ".evalmeta")
    refused = evalmeta("store", "copy", *words)
    assert refused.code == 2
    assert reason in refused.err
    assert "Try this" in refused.err or "nowhere" in words or "itself" in reason or "mysql" in reason
    assert PASSWORD not in refused.out + refused.err
    assert rows(project / ".evalmeta") == before


@pytest.mark.usefixtures("folder")
def test_a_store_is_brought_up_to_date_and_checked(tmp_path: Path, evalmeta: Evalmeta) -> None:
    missing = evalmeta("store", "check")
    assert (missing.code, missing.out.split()[0]) == (0, "ok")
    assert "does not exist yet" in missing.out
    assert not (tmp_path / ".evalmeta").exists()
    assert "layout 0 is now layout " in evalmeta("store", "migrate").out
    assert "is up to date: layout " in evalmeta("store", "migrate").out
    migrated = json.loads(evalmeta("store", "migrate", "other", "--json").out)["result"]
    assert migrated["before"] == 0 < migrated["after"]


def test_a_whole_store_has_nothing_to_report(project: Path, evalmeta: Evalmeta) -> None:
    checked = evalmeta("store", "check")
    assert checked.code == 0, checked.out
    assert "error" not in checked.out
    assert f"with {len(rows(project / '.evalmeta')['case_result'])} results" in checked.out


@pytest.mark.parametrize(
    ("change", "damage"),
    [
        ("UPDATE case_result SET run_id = run_id || '1'", "results without their run"),
        ("DELETE FROM case_result WHERE number = 1", "completed runs without all their results"),
        ("DELETE FROM content", "runs without the content of their test"),
        ("UPDATE case_result SET body = x'7b'", "results that cannot be read"),
    ],
)
def test_rows_that_do_not_belong_together_are_an_error(
    project: Path, evalmeta: Evalmeta, change: str, damage: str
) -> None:
    with sqlite3.connect(project / ".evalmeta" / "org.sqlite3") as connection:
        connection.execute(change)
    checked = evalmeta("store", "check")
    assert checked.code == 1
    assert damage in checked.out
    report = json.loads(evalmeta("store", "check", "--json").out)
    assert (report["status"], report["result"]["checks"][-1]["status"]) == (1, "error")


def test_a_damaged_file_is_an_error(project: Path, evalmeta: Evalmeta) -> None:
    file = project / ".evalmeta" / "org.sqlite3"
    content = bytearray(file.read_bytes())
    content[4096:8192] = bytes(4096)
    file.write_bytes(content)
    checked = evalmeta("store", "check")
    assert checked.code == 1
    assert checked.out.startswith("error")
    assert "is not a valid database" in checked.out


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty project."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").touch()


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, store_url: str) -> str:
    """A shared store that the variable names."""
    monkeypatch.setenv(STORE_VARIABLE, store_url)
    return store_url


def test_a_shared_store_is_brought_up_to_date_checked_and_filled_and_copied_back(
    project: Path, shared: str, evalmeta: Evalmeta
) -> None:
    before = rows(project / ".evalmeta")
    migrated = evalmeta("store", "migrate")
    assert "layout 0 is now layout " in migrated.out
    assert "is up to date: layout " in evalmeta("store", "migrate", "shared").out
    assert evalmeta("store", "check").code == 0
    there = evalmeta("store", "copy", "local", "shared")
    assert there.code == 0, there.err
    back = evalmeta("store", "copy", "shared", "back")
    assert back.out == there.out
    assert {name: sorted(map(repr, stored)) for name, stored in rows(project / "back").items()} == {
        name: sorted(map(repr, stored)) for name, stored in before.items()
    }
    assert evalmeta("store", "check").code == 0
    refused = evalmeta("store", "copy", "shared", "shared")
    assert "cannot be copied to itself" in refused.err
    shown = "".join(
        done.out + done.err for done in (migrated, there, back, refused, evalmeta("store", "check", "--json"))
    )
    assert unquote(urlsplit(shared).password or "") not in shown
    assert urlsplit(shared).password not in shown
    assert shared not in shown


@pytest.mark.usefixtures("folder", "shared")
def test_what_the_role_of_a_shared_store_may_not_do_is_an_error(
    evalmeta: Evalmeta, postgres_servers: PostgresServers, postgres_store: PostgresStore
) -> None:
    evalmeta("store", "migrate")
    with postgres_servers.postgres.connect() as admin:
        admin.execute(f"REVOKE DELETE ON {postgres_store.name}.rating FROM {postgres_store.name}")
    checked = evalmeta("store", "check")
    assert checked.code == 1
    assert "error    privileges: the role lacks SELECT, INSERT, UPDATE and DELETE on rating" in checked.out


@pytest.mark.usefixtures("folder", "shared")
def test_a_server_that_can_lose_commits_is_a_warning(evalmeta: Evalmeta) -> None:
    checked = evalmeta("store", "check")
    # The server of the tests writes nothing to the disk before it answers.
    assert "warning  durability: fsync or full_page_writes is off" in checked.out
    assert checked.code == 0


@pytest.mark.usefixtures("folder")
def test_a_store_that_cannot_be_reached_is_an_error(monkeypatch: pytest.MonkeyPatch, evalmeta: Evalmeta) -> None:
    monkeypatch.setenv(STORE_VARIABLE, f"postgresql://ada:{PASSWORD}@127.0.0.1:{free_port()}/team")
    checked = evalmeta("store", "check")
    assert checked.code == 1
    assert checked.out.startswith("error    store: postgresql://127.0.0.1:")
    assert PASSWORD not in checked.out + checked.err
