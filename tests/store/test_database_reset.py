from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.registry import TYPES
from evalmeta.store.components import Components, Synced, Tracking
from evalmeta.store.database import delete_contents, open_database
from evalmeta.store.runs import keep_content
from evalmeta.store.users import Users
from stores import store_in

if TYPE_CHECKING:
    from pathlib import Path

TYPE = TYPES[0]


def test_contents_are_deleted_and_users_tokens_and_counters_stay(tmp_path: Path) -> None:
    with open_database(store_in(tmp_path)) as database:
        with database.transaction():
            Components(database).save(TYPE, {"A": b"a"}, now=1)
        Users(database).add_token(Users(database).all_users()[0], org_id="00D", now=0, expires=1)
        delete_contents(database, is_ours=lambda _: True)
        with database.transaction():
            saved = Components(database).save(TYPE, {"B": b"b"}, now=2)
        assert [each.full_name for each in Components(database).list(TYPE.name)] == ["B"]
        assert saved["B"].id == "4KA000000000002GAA"
        assert len(Users(database).list_tokens()) == 1


def test_contents_of_tests_that_no_run_has_any_more_are_deleted(tmp_path: Path) -> None:
    with open_database(store_in(tmp_path)) as database:
        with database.transaction():
            keep_content(database, b"<AiEvaluationDefinition/>")
        delete_contents(database, is_ours=lambda _: True)
        assert database.query("SELECT * FROM content") == []


def test_tracking_of_other_orgs_stays(tmp_path: Path) -> None:
    with open_database(store_in(tmp_path)) as database:
        orgs = {url: Tracking(database, project="..", org_url=url) for url in ("here", "there")}
        for org in orgs.values():
            org.remember(TYPE.name, {"A": Synced(b"a", "")})
        delete_contents(database, is_ours=lambda url: url == "here")
        assert {url: len(each.load(TYPE.name)) for url, each in orgs.items()} == {"here": 0, "there": 1}
