from __future__ import annotations

import pytest

from evalmeta.model.registry import SyncState, sync_state


@pytest.mark.parametrize(
    ("local", "org", "base", "state"),
    [
        (b"1", b"1", b"1", "same"),
        (b"2", b"2", b"1", "same"),
        (b"1", b"1", None, "same"),
        (None, None, b"1", "same"),
        (b"2", b"1", b"1", "changed locally"),
        (b"1", b"2", b"1", "changed in the org"),
        (b"2", b"3", b"1", "conflict"),
        (b"1", b"2", None, "conflict"),
        (b"1", None, None, "only local"),
        (None, b"1", None, "only in the org"),
        (None, b"1", b"1", "deleted locally"),
        (b"1", None, b"1", "deleted in the org"),
        (None, b"2", b"1", "conflict"),
        (b"2", None, b"1", "conflict"),
    ],
)
def test_three_hashes_tell_what_happened(
    local: bytes | None, org: bytes | None, base: bytes | None, state: str
) -> None:
    assert sync_state(local=local, org=org, base=base) is SyncState(state)
