from __future__ import annotations

from pathlib import Path

import pytest

from evalmeta.model.store import Store, StoreUrl, read_store_url

URL = "postgresql://me:hunter2@db.example:6432/evals?sslmode=require"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (URL, "postgresql://db.example:6432/evals"),
        ("postgres://db/evals", "postgresql://db/evals"),
        ("postgresql://me@a,b:6432/evals", "postgresql://a,b:6432/evals"),
        ("postgresql:///evals?host=/run/postgresql", "postgresql:///run/postgresql/evals"),
        ("postgresql://me:a:b@db/evals", "postgresql://db/evals"),
        ("postgresql://me:a%40b@[::1]:5432/evals", "postgresql://[::1]:5432/evals"),
        ("postgresql://", "postgresql://localhost"),
    ],
)
def test_a_url_is_named_by_host_and_database(text: str, name: str) -> None:
    url = read_store_url(text)
    assert (url.name, str(url), url.secret) == (name, name, text)


def test_no_text_of_a_store_shows_the_password() -> None:
    store = Store(Path("state"), read_store_url(URL))
    assert "hunter2" not in f"{store} {store!r} {store.url} {store.url!r}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mysql://me:hunter2@db/evals", "must be the URL of a store, but begins with 'mysql:'; write"),
        (
            "/var/evals:hunter2",
            "must be the URL of a store; write postgresql://USER@HOST/DATABASE, or set EVALMETA_HOME",
        ),
        (
            "postgresql:/hunter2",
            "must be the URL of a store, but begins with 'postgresql:'; write postgresql://USER@HOST",
        ),
    ],
)
def test_another_text_is_refused_without_saying_it(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        read_store_url(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *(f"postgresql://me:hunter2{sign}rest@db/evals" for sign in "/?#@"),
        "postgresql://me:hunter2/evals",
        "postgresql://me:x@hunter2@db/evals",
        "postgresql://db/evals?user=me@hunter2",
    ],
)
def test_a_password_that_is_not_quoted_is_refused_because_a_part_of_it_would_be_taken_for_the_host(text: str) -> None:
    with pytest.raises(ValueError, match="with / as %2F") as caught:
        read_store_url(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "has_password"),
    [
        (URL, True),
        ("postgresql://me@db/evals", False),
        ("postgresql://db:6432/evals", False),
        ("postgresql://db/evals?user=me&password=hunter2", True),
    ],
)
def test_a_password_is_noticed(text: str, has_password: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert read_store_url(text).has_password is has_password


def test_a_folder_names_projects_by_their_place_and_a_shared_store_without_telling_it(tmp_path: Path) -> None:
    folder = tmp_path / ".evalmeta"
    assert Store(folder).project(tmp_path) == ".."
    shared = Store(folder, StoreUrl("", ""))
    names = {shared.project(root) for root in (tmp_path, tmp_path / "other", tmp_path)}
    assert len(names) == 2
    assert not any("/" in name or tmp_path.name in name for name in names)


def test_another_process_finds_the_same_store(tmp_path: Path) -> None:
    assert Store(tmp_path).variables == {"EVALMETA_HOME": str(tmp_path)}
    shared = Store(tmp_path, read_store_url(URL))
    assert shared.variables == {"EVALMETA_HOME": str(tmp_path), "EVALMETA_STORE": URL}
