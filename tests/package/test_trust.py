"""What evalmeta does with a folder that others have filled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from evalmeta.errors import ProjectError, StoreError, UsageError
from evalmeta.package.project import find_project
from evalmeta.package.trust import SAFE_FOLDERS, refuse_foreign, signature, state_file
from evalmeta.store.database import open_database
from evalmeta.store.sqlite import check_integrity
from stores import store_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project

STRANGER: Final = 54_321
AS_ROOT: Final = os.geteuid() == 0


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / ".evalmeta"
    open_database(store_in(folder)).close()
    return folder


@pytest.fixture
def victim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file outside the project that a link in the state folder points to."""
    file = tmp_path_factory.mktemp("outside") / "victim"
    file.write_text("precious")
    return file


@pytest.mark.parametrize("name", ["org.sqlite3", "org.sqlite3-wal", "org.sqlite3-shm", "org.sqlite3-journal"])
@pytest.mark.parametrize("points_to", ["a file", "nothing"])
def test_a_link_in_place_of_the_database_is_refused(state: Path, victim: Path, name: str, points_to: str) -> None:
    (state / name).unlink(missing_ok=True)
    (state / name).symlink_to(victim if points_to == "a file" else victim.with_name("gone"))
    with pytest.raises(StoreError, match=f"{name} is a link"):
        open_database(store_in(state))
    assert [path.name for path in victim.parent.iterdir()] == ["victim"]
    assert victim.read_text() == "precious"


def test_a_database_behind_a_link_is_not_checked_either(state: Path, victim: Path) -> None:
    (state / "org.sqlite3").unlink()
    (state / "org.sqlite3").symlink_to(victim)
    with pytest.raises(StoreError, match="is a link"):
        check_integrity(state)


def test_a_state_folder_that_is_a_link_is_refused_with_the_way_out(tmp_path: Path, state: Path) -> None:
    moved = state.rename(tmp_path / "moved")
    state.symlink_to(moved)
    with pytest.raises(StoreError, match=r"\.evalmeta is a link") as refused:
        open_database(store_in(state))
    assert "set EVALMETA_HOME to that folder" in str(refused.value.actions)
    open_database(moved).close()


def test_a_folder_that_a_variable_names_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    open_database(store_in(tmp_path / "home")).close()
    assert (tmp_path / "disk" / "org.sqlite3").is_file()


def test_what_is_not_a_file_is_refused(state: Path) -> None:
    os.mkfifo(state / "server.json")
    with pytest.raises(StoreError, match=r"server\.json is not a file"):
        state_file(state, "server.json")


def test_a_link_to_a_folder_on_the_way_is_refused(state: Path, victim: Path) -> None:
    (state / "logs").symlink_to(victim.parent)
    with pytest.raises(StoreError, match="logs is a link"):
        state_file(state, "logs", "server.log")


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose settings belong to another user, and a folder in it.

    Without the right to give files away, this process says that it has another user id.
    """
    settings = tmp_path / "evalmeta.toml"
    settings.touch()
    (tmp_path / "mine").mkdir()
    if AS_ROOT:
        os.chown(settings, STRANGER, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    return tmp_path


@pytest.mark.parametrize("start", [".", "mine"])
@pytest.mark.parametrize("read", [find_project, partial(find_project, with_settings=False)])
def test_settings_of_another_user_are_refused_with_the_line_that_allows_them(
    foreign: Path, start: str, read: Callable[[Path], Project]
) -> None:
    with pytest.raises(ProjectError, match=r"evalmeta\.toml belongs to another user \(.*user id \d+\)") as refused:
        read(foreign / start)
    assert f"export {SAFE_FOLDERS}={foreign}" in str(refused.value.actions)


@pytest.mark.parametrize("form", ["{0}", "{0}/", "/nowhere:{0}", "{0}/..", "*", "/"])
def test_settings_of_another_user_in_a_safe_folder_are_read(
    foreign: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv(SAFE_FOLDERS, form.format(foreign))
    assert find_project(foreign / "mine").root == foreign


@pytest.mark.parametrize("form", ["", ":", ".", "{0}/mine", "{0}x", "/nowhere"])
def test_other_folders_are_not_safe(foreign: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv(SAFE_FOLDERS, form.format(foreign))
    monkeypatch.chdir(foreign)
    with pytest.raises(ProjectError, match="belongs to another user"):
        find_project(foreign)


def test_a_link_of_another_user_to_own_settings_is_refused(
    foreign: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = tmp_path_factory.mktemp("own") / "evalmeta.toml"
    own.touch()
    (foreign / "evalmeta.toml").unlink()
    (foreign / "evalmeta.toml").symlink_to(own)
    if AS_ROOT:
        os.chown(foreign / "evalmeta.toml", STRANGER, -1, follow_symlinks=False)
    with pytest.raises(ProjectError, match="belongs to another user"):
        find_project(foreign)


def test_the_file_of_a_dx_project_is_treated_the_same(foreign: Path) -> None:
    (foreign / "evalmeta.toml").rename(foreign / "sfdx-project.json")
    with pytest.raises(ProjectError, match=r"sfdx-project\.json belongs to another user"):
        find_project(foreign)


def test_files_of_the_administrator_are_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evalmeta.toml").touch()
    if AS_ROOT:
        monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    refuse_foreign(Path("/etc/passwd"))
    if AS_ROOT:
        assert find_project(tmp_path).root == tmp_path


def test_with_sudo_the_files_of_the_user_are_own_files(foreign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = (foreign / "evalmeta.toml").stat().st_uid
    monkeypatch.setenv("SUDO_UID", str(owner))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert find_project(foreign).root == foreign


def test_sudo_says_nothing_to_other_users(foreign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = (foreign / "evalmeta.toml").stat().st_uid
    monkeypatch.setenv("SUDO_UID", str(owner))
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER + 1)
    if owner:
        with pytest.raises(ProjectError, match="belongs to another user"):
            find_project(foreign)


@pytest.fixture
def sign(tmp_path: Path) -> Callable[..., bytes | None]:
    def call(folder: str = "a", *parts: bytes, create: bool = True) -> bytes | None:
        return signature(tmp_path / folder, *parts, create=create)

    return call


def test_a_signature_is_for_a_folder_and_its_values(sign: Callable[..., bytes | None]) -> None:
    one = sign("a", b"1", b"2")
    assert one == sign("a", b"1", b"2")
    others = [sign("b", b"1", b"2"), sign("a", b"12"), sign("a", b"1", b"2", b""), sign("a", b"2", b"1"), sign("a")]
    assert one not in others
    assert len({*others}) == len(others)


def test_a_signature_is_for_a_user(sign: Callable[..., bytes | None], monkeypatch: pytest.MonkeyPatch) -> None:
    one = sign("a", b"1")
    monkeypatch.setattr(os, "getuid", lambda: STRANGER)
    assert one != sign("a", b"1")


def test_another_key_makes_other_signatures(
    sign: Callable[..., bytes | None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = sign("a", b"1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert sign("a", b"1", create=False) is None
    assert not (tmp_path / "other").exists()
    assert sign("a", b"1") not in {one, None}
    key = tmp_path / "other" / "evalmeta" / "token.key"
    assert [path.stat().st_mode & 0o777 for path in (key, key.parent)] == [0o600, 0o700]


def test_a_key_that_others_may_read_is_refused(
    sign: Callable[..., bytes | None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    sign()
    (tmp_path / "evalmeta" / "token.key").chmod(0o640)
    with pytest.raises(UsageError, match=r"token\.key: other users can read it \(mode 640\)"):
        sign()


def test_a_key_that_cannot_be_kept_is_an_error_with_the_way_out(
    sign: Callable[..., bytes | None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert sign(create=False) is None
    with pytest.raises(UsageError, match="cannot be kept") as refused:
        sign()
    assert "Set XDG_STATE_HOME" in str(refused.value.actions)


def test_processes_that_need_a_key_at_once_get_the_same(tmp_path: Path) -> None:
    code = "from pathlib import Path; from evalmeta.package.trust import signature as s; print(s(Path(), create=True))"
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) for _ in range(4)
    ]
    assert len({process.communicate()[0] for process in started}) == 1
    shutil.rmtree(tmp_path / "evalmeta")
