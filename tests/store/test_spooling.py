from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import pytest

from evalmeta import limits
from evalmeta.errors import StoreError, StoreFull
from evalmeta.model.evaluation import Case, Evaluation
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, RunContent, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.model.store import Store, read_store_url
from evalmeta.store.database import open_database
from evalmeta.store.runs import Lease, RunJournal, Runs
from evalmeta.store.spooling import SpooledJournal, send_left
from relay import relay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.model.run import Run
    from evalmeta.store.database import Database
    from relay import Relay

EVALUATION = Evaluation("Orders", "Desk", tuple(Case(number, ()) for number in range(1, 5)))


def result(number: int, utterance: str = "Where?") -> CaseResult:
    return CaseResult(number, 1, utterance, Verdict.PASS, 10.0, 11.5)


class Scene(NamedTuple):
    """A run with a worker whose connection to the store goes over a relay."""

    database: Database
    run: Run
    relay: Relay
    direct: Store

    def journal(self) -> SpooledJournal:
        return SpooledJournal(RunJournal(self.database, self.run.id, "worker"), self.database, self.run)

    def stored(self) -> list[CaseResult]:
        """Return what the store has, whether or not the worker reaches it."""
        with open_database(self.direct) as database:
            return list(Runs(database).cases(self.run.id))

    def unsent(self) -> list[Path]:
        return list(self.database.folder.glob("unsent/*"))


@pytest.fixture
def scene(folder: Path, tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(limits, "SPOOL_SECONDS", 0.02)
    port = urlsplit(store_url).port or 0
    with relay(port) as passing:
        over = store_url.replace(f":{port}/", f":{passing.port}/")
        with open_database(Store(folder, read_store_url(over))) as database:
            runs = Runs(database)
            run_id = runs.start(
                EVALUATION_DEFINITION, EVALUATION, RunContent(b"<xml/>"), RunOptions(), total=4, now=100
            )
            assert runs.claim(run_id, "worker", taken_from=Lease(None, None), until=9e9, now=100)
            run = runs.get(run_id)
            assert run
            yield Scene(database, run, passing, Store(tmp_path / "direct", read_store_url(store_url)))


def test_results_go_to_the_store_while_it_can_be_reached(scene: Scene) -> None:
    journal = scene.journal()
    journal.append([result(1), result(2)])
    asyncio.run(journal.delivered())
    assert scene.stored() == [result(1), result(2)]
    assert scene.unsent() == []
    assert not journal.has_waited


def test_results_wait_and_reach_the_store_when_it_can_be_reached_again(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    journal = scene.journal()
    journal.append([result(1)])
    scene.relay.cut()
    journal.append([result(2)])
    journal.append([result(3)])
    assert scene.stored() == [result(1)]
    assert len(scene.unsent()) == 1
    scene.relay.mend()
    asyncio.run(journal.delivered())
    journal.append([result(4)])
    assert scene.stored() == [result(number) for number in range(1, 5)]
    assert scene.unsent() == []
    assert journal.has_waited
    assert len(caplog.messages) == 1
    assert "cannot be reached" in caplog.messages[0]
    assert "@" not in caplog.messages[0]


def test_a_store_that_goes_away_again_and_again_gets_each_result_once(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    journal = scene.journal()
    for number in range(1, 5):
        scene.relay.cut()
        journal.append([result(number)])
        scene.relay.mend()
        if number % 2:
            asyncio.run(journal.delivered())
    asyncio.run(journal.delivered())
    assert scene.stored() == [result(number) for number in range(1, 5)]
    assert len(caplog.messages) == 1


def test_the_next_worker_sends_what_a_killed_one_has_left(scene: Scene) -> None:
    killed = scene.journal()
    scene.relay.cut()
    killed.append([result(1), result(2)])
    killed.close()
    scene.relay.mend()
    assert scene.stored() == []
    journal = scene.journal()
    journal.send_earlier()
    assert journal.finished() == {(1, 1), (1, 2)}
    assert scene.unsent() == []
    assert journal.has_waited


def test_a_result_that_another_worker_added_meanwhile_stays(scene: Scene) -> None:
    journal = scene.journal()
    scene.relay.cut()
    journal.append([result(1, "mine"), result(2, "mine")])
    with open_database(scene.direct) as database:
        assert Runs(database).claim(scene.run.id, "other", taken_from=Lease("worker", 9e9), until=9e9)
        RunJournal(database, scene.run.id, "other").append([result(1, "theirs")])
    scene.relay.mend()
    asyncio.run(journal.delivered())
    assert scene.stored() == [result(1, "theirs"), result(2, "mine")]
    with pytest.raises(StoreError, match="taken over by another worker"):
        journal.append([result(3, "mine")])


def test_another_run_with_the_same_id_does_not_get_the_results(scene: Scene) -> None:
    journal = scene.journal()
    scene.relay.cut()
    journal.append([result(1)])
    journal.close()
    scene.relay.mend()
    later = SpooledJournal(
        RunJournal(scene.database, scene.run.id, "worker"), scene.database, replace(scene.run, started=99.0)
    )
    later.send_earlier()
    assert scene.stored() == []
    assert len(scene.unsent()) == 1


def test_results_that_are_too_many_to_wait_stop_the_run(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SPOOL_BYTES", 100)
    journal = scene.journal()
    scene.relay.cut()
    journal.append([result(1)])
    with pytest.raises(StoreFull):
        journal.append([result(2, "x" * 100)])
    scene.relay.mend()
    asyncio.run(journal.delivered())
    assert scene.stored() == [result(1)]


def killed(scene: Scene, *results: CaseResult) -> None:
    """Leave results of a worker that was killed while the store could not be reached."""
    journal = scene.journal()
    scene.relay.cut()
    journal.append(results)
    journal.close()
    scene.relay.mend()


def test_the_next_command_sends_what_killed_workers_have_left(scene: Scene) -> None:
    killed(scene, result(1), result(2))
    send_left(scene.database, is_free=lambda _: False)
    assert scene.stored() == []
    send_left(scene.database, is_free=lambda _: True)
    assert scene.stored() == [result(1), result(2)]
    assert scene.unsent() == []


def test_a_canceled_run_gets_no_results_afterwards(scene: Scene) -> None:
    killed(scene, result(1))
    assert Runs(scene.database).cancel(scene.run.id, error="canceled", now=200)
    send_left(scene.database, is_free=lambda _: True)
    assert scene.stored() == []
    assert scene.unsent() == []


def test_results_of_a_run_that_was_deleted_stay_in_the_file_and_stop_the_run(scene: Scene) -> None:
    journal = scene.journal()
    scene.relay.cut()
    journal.append([result(1)])
    with open_database(scene.direct) as database:
        database.execute("DELETE FROM run WHERE id = ?", (scene.run.id,))
    scene.relay.mend()
    with pytest.raises(StoreError, match="was deleted"):
        asyncio.run(journal.delivered())
    assert len(scene.unsent()) == 1
    assert scene.database.query("SELECT count(*) FROM case_result") == [(0,)]
