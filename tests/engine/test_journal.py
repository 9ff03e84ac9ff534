from __future__ import annotations

from engine.builders import case_result
from evalmeta.engine.journal import MemoryJournal
from evalmeta.model.run import Verdict


def test_a_memory_journal_knows_what_is_finished() -> None:
    journal = MemoryJournal()
    journal.append([case_result(Verdict.PASS, number=1), case_result(Verdict.FAILURE, number=2)])
    assert journal.finished() == {(1, 1), (1, 2)}


def test_a_new_memory_journal_has_nothing_finished() -> None:
    assert MemoryJournal().finished() == frozenset()
