from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.model.login import ADMIN
from evalmeta.model.registry import TYPES
from evalmeta.store.components import Change, Components, StoredComponent
from evalmeta.store.database import dry_run

if TYPE_CHECKING:
    from evalmeta.store.database import Database

KIND = TYPES[0]
A1, A2 = "4KA000000000001GAA", "4KA000000000002GAA"


@pytest.fixture
def components(database: Database) -> Components:
    """One component, A, made at 1."""
    stored = Components(database)
    stored.save(KIND, {"A": b"one"}, now=1)
    return stored


def test_a_new_component_is_created(components: Components) -> None:
    assert components.save(KIND, {"B": b"two"}, now=2) == {"B": Change(A2, created=True, changed=True)}
    assert components.content(KIND.name, "B") == b"two"


def test_other_bytes_change_a_component_and_keep_its_id(components: Components) -> None:
    assert components.save(KIND, {"A": b"two"}, now=2) == {"A": Change(A1, created=False, changed=True)}
    assert components.list(KIND.name) == [StoredComponent(KIND.name, "A", A1, 1, 2)]


def test_the_same_bytes_change_nothing_not_even_the_date(components: Components) -> None:
    assert components.save(KIND, {"A": b"one"}, now=2) == {"A": Change(A1, created=False, changed=False)}
    assert components.list(KIND.name) == [StoredComponent(KIND.name, "A", A1, 1, 1)]


def test_a_deleted_component_is_gone(components: Components) -> None:
    assert components.delete(KIND.name, "a") == A1
    assert components.delete(KIND.name, "A") is None
    assert components.list(KIND.name) == []


def test_a_dry_run_changes_nothing(database: Database, components: Components) -> None:
    with database.transaction(), dry_run(database):
        changes = components.save(KIND, {"A": b"two", "B": b"two"}, now=2)
    assert [(change.created, change.changed) for change in changes.values()] == [(False, True), (True, True)]
    assert components.list(KIND.name) == [StoredComponent(KIND.name, "A", A1, 1, 1)]


def test_components_are_listed_by_name(components: Components) -> None:
    components.save(KIND, {"C": b"", "B": b""}, now=2)
    assert [each.full_name for each in components.list(KIND.name)] == ["A", "B", "C"]


def test_a_name_in_another_case_is_the_same_component(components: Components) -> None:
    assert components.save(KIND, {"a": b"one"}, now=2) == {"a": Change(A1, created=False, changed=True)}
    assert [each.full_name for each in components.list(KIND.name)] == ["a"]


def test_any_bytes_come_back_as_they_were(components: Components) -> None:
    content = bytes(range(256)) * 100
    components.save(KIND, {"A": content}, now=2)
    assert components.content(KIND.name, "A") == content


def test_an_unknown_component_has_no_content(components: Components) -> None:
    assert components.content(KIND.name, "B") is None
    assert components.content("ApexClass", "A") is None


def test_a_component_has_its_creator_and_its_last_editor(components: Components) -> None:
    components.save(KIND, {"A": b"one"}, now=2, by="same")
    assert components.list(KIND.name)[0].modified_by == ADMIN.id
    components.save(KIND, {"A": b"two", "B": b""}, now=3, by="005")
    users = [(each.created_by, each.modified_by) for each in components.list(KIND.name)]
    assert users == [(ADMIN.id, "005"), ("005", "005")]
